"""Headless Chromium over its debugging pipe, with nothing but the standard library: opens a page at a width, evaluates in it,
and keeps what it said on its console and every address that it asked for."""
import base64
import ctypes
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

PATIENCE_S = 60
# bash, since it moves descriptors with two digits: Chromium reads its commands from 3 and writes to 4.
PLUMBING = 'exec "${@:3}" 3<&"$1" 4>&"$2"'


def find_chromium():
    return shutil.which("chromium")


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Browser:
    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(prefix="onced-browser-", ignore_cleanup_errors=True)
        theirs_in, self.commands = os.pipe()
        self.answers, theirs_out = os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs_in, theirs_out)]
        options = ["--headless", "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}", "--no-first-run", "--disable-gpu",
                   "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update", "--hide-scrollbars"]
        options += ["--no-sandbox"] if os.geteuid() == 0 else []  # which Chromium insists on
        self.process = subprocess.Popen(["bash", "-c", PLUMBING, "plumbing", *map(str, ends), find_chromium(), *options, "about:blank"],
                                        pass_fds=ends, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=end_with_parent)
        for end in (theirs_in, theirs_out, *ends):
            os.close(end)
        self.buffer, self.asked, self.session, self.events = b"", 0, None, []
        target = next(page for page in self.ask("Target.getTargets")["targetInfos"] if page["type"] == "page")
        self.session = self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.commands)
        os.close(self.answers)
        self.profile.cleanup()

    def next_message(self, deadline):
        while b"\0" not in self.buffer:
            if not select.select([self.answers], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("Chromium does not answer")
            data = os.read(self.answers, 1 << 16)
            if not data:
                raise EOFError("Chromium has ended")
            self.buffer += data
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def ask(self, method, **parameters):
        self.asked += 1
        session = {"sessionId": self.session} if self.session else {}
        command = json.dumps({"id": self.asked, "method": method, "params": parameters, **session}).encode() + b"\0"
        while command:
            command = command[os.write(self.commands, command):]
        deadline = time.monotonic() + PATIENCE_S
        while True:
            message = self.next_message(deadline)
            if message.get("id") == self.asked:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            if "method" in message:
                self.events.append(message)

    def open(self, path, width=1280):
        self.events.clear()
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.ask("Page.navigate", url=f"file://{path}")
        deadline = time.monotonic() + PATIENCE_S
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self.next_message(deadline))

    def evaluate(self, expression):
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def console(self):
        """Whatever the page or the browser wrote there, and what was thrown."""
        said = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [event["params"] for event in self.events if event["method"] in said]

    def requests(self):
        return [event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"]

    def screenshot(self, path):
        """The whole page, not only what a window shows of it."""
        image = self.ask("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(image))

    def print_to(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.ask("Page.printToPDF", preferCSSPageSize=True)["data"]))
