#!/usr/bin/env python3
"""A worker in Python, on nothing but the standard library: it runs tasks of a Millrace server, over one connection.

    MILLRACE_URL=http://127.0.0.1:8080 MILLRACE_TOKEN=... scripts/examples/worker.py '/topics/mail/*' 4

The first argument is a pattern of jobs, the second how many tasks run at once. SIGTERM ends it after what it runs.
All that it has to say goes to the server in one request, an exchange, whose answer brings new tasks and those to stop.
"""

import collections
import http.client
import json
import os
import signal
import sys
import threading
import time
import urllib.parse
import uuid
from concurrent.futures import ThreadPoolExecutor

BASE = urllib.parse.urlsplit(os.environ.get("MILLRACE_URL", "http://127.0.0.1:8080"))
TOKEN = os.environ.get("MILLRACE_TOKEN") or os.environ.get("MILLRACE_ADMIN_TOKEN", "")  # as the command line
OUTPUT = 256 << 10  # bytes of an output; the server refuses an exchange with more
QUICK = 0.001  # seconds: how long tasks that were just begun may take to be reported in the next exchange


def work(task, stop, log):
    """Does what a task asks for: this is the part to replace. It ends early when stop is set; an exception is a failure."""
    return {"echo": task.get("payload")}


class Server:
    """One connection, kept open. A request is sent again until it is answered; each may safely be."""

    def __init__(self):
        # Where a request that waits costs as much as one that works, the server need not wait: the worker pauses.
        self.headers = {"Authorization": "Bearer " + TOKEN, "Content-Type": "application/json", "Prefer": "pause"}
        self.connection, self.brief = None, False

    def call(self, method, path, body=None, within=30.0, headers=None, patience=None):
        """Answers the status, the body, and when the request was sent that was answered."""
        data = None if body is None else json.dumps(body).encode()
        until = None if patience is None else time.monotonic() + patience
        while True:
            sent = time.monotonic()
            try:
                if self.connection is None:
                    kind = http.client.HTTPSConnection if BASE.scheme == "https" else http.client.HTTPConnection
                    self.connection = kind(BASE.hostname, BASE.port)
                    self.connection.connect()
                self.connection.sock.settimeout(within)
                self.connection.request(method, BASE.path + "/api/v1/" + path, data, {**self.headers, **(headers or {})})
                answer = self.connection.getresponse()
                text = answer.read()
                self.brief = answer.getheader("Preference-Applied") == "pause"  # it has not waited
                if answer.status not in (429, 502, 503, 504):
                    return answer.status, json.loads(text) if text else {}, sent
            except (OSError, http.client.HTTPException):
                if self.connection is not None:
                    self.connection.close()
                self.connection = None
            if until is not None and time.monotonic() > until:
                return 0, {}, sent
            time.sleep(0.2)


class Running:
    """A task that runs. Whether the lease is over, only the server says."""

    def __init__(self, task):
        self.task, self.token, self.stop, self.lines, self.told = task, task["token"], threading.Event(), [], 0

    def log(self, message, level="info"):
        self.lines.append({"level": level, "message": message})


class Worker:
    def __init__(self, jobs, capacity):
        self.server, self.capacity, self.running, self.ending, self.pause = Server(), capacity, {}, False, 0
        self.ended, self.news = collections.deque(), threading.Condition()
        self.body = {"name": "python-%d" % os.getpid(), "jobs": [jobs], "capacity": capacity}
        self.threads = ThreadPoolExecutor(capacity)
        self.register()

    def register(self):
        status, answer, _ = self.server.call("POST", "instances", self.body, headers={"Idempotency-Key": uuid.uuid4().hex})
        if status != 201:
            sys.exit("registering was answered with %d" % status)
        self.path, self.seq, self.lease = "instances/" + answer["id"], 0, answer["lease"]
        for each in self.running.values():  # the server has not heard of us for too long: others have our tasks
            each.stop.set()
        self.running.clear()
        self.ended.clear()

    def run(self, each):
        try:
            result = {"token": each.token, "result": "ok", "output": work(each.task, each.stop, each.log)}
            if len(json.dumps(result["output"])) > OUTPUT:
                raise ValueError("the output is too large: more than %d bytes as JSON" % OUTPUT)
        except Exception as failure:
            result = {"token": each.token, "result": "cancel" if each.stop.is_set() else "failed", "message": repr(failure)[:2000]}
        with self.news:
            self.ended.append(result)
            self.news.notify()

    def gather(self):
        """Waits until there is something to say, or to ask for: results of quick tasks share an exchange."""
        third = min([self.lease] + [each.task["lease"] for each in list(self.running.values())]) / 3
        with self.news:
            if self.running and not self.ended:
                room = len(self.running) < self.capacity and not self.ending
                self.news.wait(QUICK if room else third)
        results, size = [], 0
        while self.ended and len(results) < 500 and size < 500_000:
            results.append(self.ended.popleft())
            size += len(json.dumps(results[-1])) if "output" in results[-1] else 100
        return results, third

    def exchange(self):
        results, third = self.gather()
        beats = []
        for each in self.running.values():
            lines = each.lines[each.told : each.told + 100]
            if lines:
                beats.append({"token": each.token, "logs": lines})
                each.told += len(lines)
        room = 0 if self.ending else self.capacity - len(self.running) + len(results)
        # Nothing that runs may wait for long to be reported, so only an idle worker waits for long.
        wait = third if not self.running else 0.1
        body = {"seq": self.seq, "max": room, "wait": 0 if results else wait, "results": results, "beats": beats}
        status, answer, _ = self.server.call("POST", self.path + "/exchange", body, within=wait + third)
        if status == 404:
            return self.register()
        if status != 200:
            sys.exit("an exchange was answered with %d: %s" % (status, answer.get("detail")))
        self.seq += 1
        for each in answer["results"]:
            self.running.pop(each["token"], None)
            if "error" in each:
                print("a result came too late:", each["error"]["detail"], file=sys.stderr)
        for token in answer["stops"]:
            if token in self.running:
                self.running[token].stop.set()
        self.ending = self.ending or answer["draining"]
        for task in answer["claims"]:
            each = self.running[task["token"]] = Running(task)
            self.threads.submit(self.run, each)
        idle = self.server.brief and not self.running and not results
        self.pause = min(max(1, 2 * self.pause), third) if idle else 0

    def main(self):
        while self.running or not self.ending:
            self.exchange()
            until = time.monotonic() + self.pause
            while not self.ending and time.monotonic() < until:
                time.sleep(0.2)
        self.server.call("DELETE", self.path, patience=5)

    def end(self, *_):
        self.ending = True
        drain = {"target": Server().call, "args": ("POST", self.path + "/drain"), "kwargs": {"patience": 5}, "daemon": True}
        threading.Thread(**drain).start()  # ends the exchange that waits for tasks


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    worker = Worker(sys.argv[1], int(sys.argv[2]))
    signal.signal(signal.SIGTERM, worker.end)
    signal.signal(signal.SIGINT, worker.end)
    worker.main()
