#!/usr/bin/env python3
"""A worker in Python, on nothing but the standard library: it runs tasks of a Millrace server and logs their payloads.

    MILLRACE_URL=http://127.0.0.1:8080 MILLRACE_TOKEN=... scripts/examples/worker.py '/topics/mail/*' 4

The first argument is a pattern of jobs, the second how many tasks run at once. SIGTERM ends it after what it runs.
"""

import http.client
import json
import os
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid

BASE = os.environ.get("MILLRACE_URL", "http://127.0.0.1:8080") + "/api/v1/"
TOKEN = os.environ.get("MILLRACE_TOKEN") or os.environ.get("MILLRACE_ADMIN_TOKEN", "")  # as the command line
ending = threading.Event()


def call(method, path, body=None, patience=30.0, within=30.0, key=None):
    """Sends a request, and answers its status, its body, and when that was sent which was answered. While the server is away or
    busy, it is sent again; each attempt may take so many seconds. With a key it is done once, however often it is sent."""
    until = time.monotonic() + patience
    data = None if body is None else json.dumps(body).encode()
    while True:
        request = urllib.request.Request(BASE + path, data, method=method)
        request.add_header("Authorization", "Bearer " + TOKEN)
        request.add_header("Content-Type", "application/json")
        if key:
            request.add_header("Idempotency-Key", key)
        sent = time.monotonic()
        try:
            with urllib.request.urlopen(request, timeout=within) as answer:
                text = answer.read()
                return answer.status, json.loads(text) if text else None, sent
        except urllib.error.HTTPError as refusal:
            again = refusal.code in (429, 502, 503, 504) or key and refusal.code == 409  # the first is still at work
            if not again or time.monotonic() > until:
                return refusal.code, None, sent
        except (OSError, http.client.HTTPException):
            if time.monotonic() > until:
                raise
        time.sleep(0.2)


def work(task, stop):
    """Does what a task asks for: this is the part to replace. It ends early when stop is set; an exception is a failure."""
    return {"echo": task.get("payload")}


class Lease:
    """The right to run a task. By our own clock it lasts for its length from when the request was sent that granted or extended it."""

    def __init__(self, task, granted):
        self.task, self.path, self.length = task, "leases/" + task["token"], task["lease"]
        self.until = granted + self.length
        self.stop, self.done, self.lost = threading.Event(), threading.Event(), False

    def left(self):
        return self.until - time.monotonic()

    def keep(self):
        """Extends the lease until the task is done. Sets stop when the task is to be stopped, or is no longer ours."""
        pause = self.left() - self.length * 2 / 3
        while not self.done.wait(max(0, min(pause, self.left()))):
            pause = self.length / 3
            try:
                status, answer, sent = call("POST", self.path + "/heartbeat", {}, 0, max(0.01, min(self.length / 3, self.left())))
            except (OSError, http.client.HTTPException):
                status, pause = 0, 0.2
            if status == 200:
                self.until = sent + self.length
            if status in (404, 409) or self.left() <= 0:
                self.lost = True
            if self.lost or status == 200 and answer["stop"]:
                self.stop.set()
            if self.lost:
                return


def run(lease, room):
    """Runs a task and says how it ended, unless that is somebody else's business by now."""
    task, keeper = lease.task, threading.Thread(target=lease.keep)
    keeper.start()
    try:
        result = {"result": "ok", "output": work(task, lease.stop)}
        line = {"level": "info", "message": "payload: %.1000s" % json.dumps(task.get("payload"))}
        call("POST", lease.path + "/heartbeat", {"logs": [line], "progress": {"step": 1, "steps": 1}}, within=lease.length / 3)
    except Exception as failure:
        result = {"result": "cancel" if lease.stop.is_set() else "failed", "message": repr(failure)}
    lease.done.set()
    keeper.join()
    if not lease.lost:
        call("POST", lease.path + "/complete", result, within=lease.length / 3)
    room.release()


class Instance:
    """The worker as the server knows it. Registers again when it was not heard of for too long."""

    def __init__(self, jobs, capacity):
        self.body = {"name": "python-%d" % os.getpid(), "jobs": [jobs], "capacity": capacity}
        self.register()

    def register(self):
        status, answer, _ = call("POST", "instances", self.body, key=uuid.uuid4().hex)
        if status != 201:
            sys.exit("registering was answered with %d" % status)
        self.path, self.lease = "instances/" + answer["id"], answer["lease"]

    def beat(self, over):
        while not over.wait(self.lease / 3):
            status, answer, _ = call("PUT", self.path, {}, within=self.lease / 3)
            if status == 200 and answer.get("draining"):
                ending.set()

    def claim(self, most):
        """Asks for tasks under a key: when the answer is lost, the same are given again."""
        body, key = {"max": most, "wait": "2s"}, uuid.uuid4().hex
        status, answer, sent = call("POST", self.path + "/claims", body, within=2 + self.lease / 3, key=key)
        if status == 404:
            self.register()
        elif status in (401, 403):
            sys.exit("claiming was answered with %d" % status)
        return [Lease(task, sent + answer["waited"]) for task in answer["claims"]] if status == 200 else []


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
        leases = instance.claim(free)
        for _ in range(free - len(leases)):
            room.release()
        for lease in leases:
            threading.Thread(target=run, args=(lease, room)).start()
    for _ in range(capacity):  # all that runs ends first
        room.acquire()
    over.set()
    call("DELETE", instance.path)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], int(sys.argv[2]))
