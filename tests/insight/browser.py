# SPDX-License-Identifier: Apache-2.0
"""A page in headless Chromium, through its DevTools protocol over pipes: messages are JSON that ends with a zero byte.

Only the standard library is used."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

SECONDS = 60


def find():
    """The path of an installed Chromium; None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """`with Browser() as page:`; what the page says on its console gathers in `messages`, as (level, text)."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        their_input, self.output = os.pipe()
        self.input, their_output = os.pipe()

        def pipes():  # Chromium reads descriptor 3 and writes descriptor 4
            source, target = os.dup(their_input), os.dup(their_output)
            os.dup2(source, 3)
            os.dup2(target, 4)

        command = [find(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                   "--disable-features=IsolateSandboxedIframes",  # so that frames are of the page's own process
                   "--remote-debugging-pipe", f"--user-data-dir={self.folder.name}", "about:blank"]
        self.process = subprocess.Popen(command, preexec_fn=pipes, close_fds=False, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(their_input)
        os.close(their_output)
        self.number, self.rest, self.messages, self.loaded, self.session = 0, b"", [], False, None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(domain + ".enable")
        return self

    def __exit__(self, *error):
        os.close(self.output)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.input)
        self.folder.cleanup()

    def receive(self, until):
        """The next message; reads no longer than to that time."""
        while b"\0" not in self.rest:
            if not select.select([self.input], [], [], max(0, until - time.monotonic()))[0]:
                raise TimeoutError("Chromium did not answer")
            read = os.read(self.input, 1 << 20)
            if not read:
                raise ConnectionError("Chromium has ended")
            self.rest += read
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def note(self, message):
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Runtime.consoleAPICalled":
            self.messages.append((parameters["type"], " ".join(str(a.get("value", a.get("description"))) for a in parameters["args"])))
        elif method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.messages.append(("error", details.get("exception", {}).get("description", details["text"])))
        elif method == "Log.entryAdded":
            self.messages.append((parameters["entry"]["level"], parameters["entry"]["text"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loaded = True

    def send(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.output, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + SECONDS
        while True:
            answer = self.receive(until)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.note(answer)

    def open(self, path, width=1280, height=900, dark=False):
        """Opens a file in a window of that size."""
        self.messages, self.requests, self.loaded = [], [], False
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.send("Page.navigate", url="about:blank")
        self.loaded = False
        self.send("Page.navigate", url=f"file://{os.path.abspath(path)}")
        until = time.monotonic() + SECONDS
        while not self.loaded:
            self.note(self.receive(until))
        self.settle()

    def settle(self):
        """Waits until drawings that follow the size of elements are there."""
        self.evaluate("new Promise(done => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 100))")

    def evaluate(self, script):
        result = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"].get("exception", {}).get("description", "the script failed"))
        return result["result"].get("value")

    def press(self, key):
        for kind in ("rawKeyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode={"Enter": 13, "Tab": 9, "Escape": 27, "ArrowRight": 39}.get(key, 0))

    def screenshot(self, path, top=0, height=None):
        """The page from `top`, whole or of that height."""
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": top, "width": size["width"], "height": min(height or size["height"], size["height"] - top), "scale": 1}
        image = self.send("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(image["data"]))
