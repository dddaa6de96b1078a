package main

import (
	"net"
	"os"
	"strconv"
)

// loopback is how a machine reaches itself.
const loopback = "127.0.0.1"

// urlAt returns the URL of a server that listens at an address. One that listens on every address of its machine has that of host.
func urlAt(listening net.Addr, host string) string {
	if at, is := listening.(*net.TCPAddr); is && at.IP.IsUnspecified() {
		return "http://" + net.JoinHostPort(host, strconv.Itoa(at.Port))
	}
	return "http://" + listening.String()
}

// callbackURL returns where those report to who are sent tasks by HTTP: MILLRACE_URL, or else where this process listens.
func (n *node) callbackURL(listening net.Addr) string {
	if url := n.URL(); url != "" {
		return url
	}
	name, err := os.Hostname()
	if err != nil {
		name = loopback
	}
	url := urlAt(listening, name)
	if url != urlAt(listening, loopback) {
		n.Log.Warn("MILLRACE_URL is not set: the callback of tasks that are sent by HTTP names this machine, by which their receivers may not find it", "callback", url)
	}
	return url
}
