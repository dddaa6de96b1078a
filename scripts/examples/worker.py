#!/usr/bin/env python3
"""A worker in Python, on nothing but the standard library: it runs tasks of a Millrace server and logs their payloads.

    MILLRACE_URL=http://127.0.0.1:8080 MILLRACE_TOKEN=... scripts/examples/worker.py '/topics/mail/*' 4

The first argument is a pattern of jobs, the second how many tasks run at once. SIGTERM ends it after what it runs.
"""

import json
import os
import signal
import sys
import threading
import time
import urllib.error
import urllib.request

BASE = os.environ.get("MILLRACE_URL", "http://127.0.0.1:8080") + "/api/v1/"
TOKEN = os.environ.get("MILLRACE_TOKEN") or os.environ.get("MILLRACE_ADMIN_TOKEN", "")  # as the command line
ending = threading.Event()


def call(method, path, body=None, patience=30.0):
    """Sends a request and answers its status and body. While the server is away or busy, it is sent again."""
    until = time.monotonic() + patience
    data = None if body is None else json.dumps(body).encode()
    while True:
        request = urllib.request.Request(BASE + path, data, method=method)
        request.add_header("Authorization", "Bearer " + TOKEN)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                text = answer.read()
                return answer.status, json.loads(text) if text else None
        except urllib.error.HTTPError as refusal:
            if refusal.code not in (429, 502, 503, 504) or time.monotonic() > until:
                return refusal.code, None
        except OSError:
            if time.monotonic() > until:
                raise
        time.sleep(0.2)


def work(task, stop):
    """Does what a task asks for: this is the part to replace. It ends early when stop is set; an exception is a failure."""
    return {"echo": task.get("payload")}


def keep(lease, seconds, stop, done):
    """Extends a lease until the task is done. Sets stop when the task is to be stopped, or is no longer ours."""
    while not done.wait(seconds / 3):
        status, answer = call("POST", lease + "/heartbeat", {}, seconds)
        if status in (404, 409):
            stop.set()
            return
        if status == 200 and answer["stop"]:
            stop.set()


def run(task, room):
    """Runs a task and says how it ended. 409 means that it came too late, and is somebody else's business now."""
    lease, stop, done = "leases/" + task["token"], threading.Event(), threading.Event()
    keeper = threading.Thread(target=keep, args=(lease, task["lease"], stop, done))
    keeper.start()
    try:
        result = {"result": "ok", "output": work(task, stop)}
        line = {"level": "info", "message": "payload: %.1000s" % json.dumps(task.get("payload"))}
        call("POST", lease + "/heartbeat", {"logs": [line], "progress": {"step": 1, "steps": 1}})
    except Exception as failure:
        result = {"result": "cancel" if stop.is_set() else "failed", "message": repr(failure)}
    done.set()
    keeper.join()
    call("POST", lease + "/complete", result)
    room.release()


class Instance:
    """The worker as the server knows it. Registers again when it was not heard of for too long."""

    def __init__(self, jobs, capacity):
        self.body = {"name": "python-%d" % os.getpid(), "jobs": [jobs], "capacity": capacity}
        self.register()

    def register(self):
        status, answer = call("POST", "instances", self.body)
        if status != 201:
            sys.exit("registering was answered with %d" % status)
        self.path, self.lease = "instances/" + answer["id"], answer["lease"]

    def beat(self, over):
        while not over.wait(self.lease / 3):
            status, answer = call("PUT", self.path, {})
            if status == 200 and answer.get("draining"):
                ending.set()

    def claim(self, most):
        status, answer = call("POST", self.path + "/claims", {"max": most, "wait": "2s"})
        if status == 404:
            self.register()
        elif status in (401, 403):
            sys.exit("claiming was answered with %d" % status)
        return answer["claims"] if status == 200 else []


def main(jobs, capacity):
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    signal.signal(signal.SIGINT, lambda *_: ending.set())
    instance, over, room = Instance(jobs, capacity), threading.Event(), threading.Semaphore(capacity)
    beats = threading.Thread(target=instance.beat, args=(over,), daemon=True)
    beats.start()
    while not ending.is_set():
        room.acquire()
        free = 1
        while free < capacity and room.acquire(blocking=False):
            free += 1
        tasks = instance.claim(free)
        for _ in range(free - len(tasks)):
            room.release()
        for task in tasks:
            threading.Thread(target=run, args=(task, room)).start()
    for _ in range(capacity):  # all that runs ends first
        room.acquire()
    over.set()
    call("DELETE", instance.path)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], int(sys.argv[2]))
