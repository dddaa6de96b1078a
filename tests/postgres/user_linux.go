package postgres

import (
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// attributes let a process end with its parent, and run as another user where the parent is root, since PostgreSQL refuses to run as root.
func attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if uid, gid, other := unprivileged(); other {
		a.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	return a
}

// give lets the user that runs PostgreSQL have a directory.
func give(dir string) error {
	if uid, gid, other := unprivileged(); other {
		return os.Chown(dir, uid, gid)
	}
	return nil
}

// unprivileged returns the user that runs PostgreSQL in place of root.
func unprivileged() (uid, gid int, other bool) {
	if os.Geteuid() != 0 {
		return 0, 0, false
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, _ = strconv.Atoi(u.Uid)
			gid, _ = strconv.Atoi(u.Gid)
			return uid, gid, true
		}
	}
	return 65534, 65534, true
}
