"""Headless Chromium over its DevTools protocol, through a pair of pipes: nothing to install but the browser itself."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # containers have no user namespaces; the pages are our own
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
)


def find():
    """Path of a browser, or None."""
    wanted = os.environ.get("PARTITA_CHROMIUM")
    return wanted or next((path for path in map(shutil.which, NAMES) if path), None)


class Chromium:
    """One browser with one tab."""

    def __init__(self, path, timeout=60.0):
        self.timeout, self.events, self._last, self._rest = timeout, [], 0, b""
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()

        def connect():  # the protocol: the browser reads from descriptor 3 and writes to 4
            a, b = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [path, *FLAGS, f"--user-data-dir={self.folder.name}", "about:blank"],
            preexec_fn=connect,
            close_fds=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.session = None
        tab = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    # ---- the protocol --------------------------------------------------------------------------------------

    def send(self, method, **params):
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        answer = self._until(lambda m: m.get("id") == self._last)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def _until(self, wanted):
        end = time.monotonic() + self.timeout
        while True:
            message = self._read(end - time.monotonic())
            if "method" in message:
                self.events.append(message)
            if wanted(message):
                return message

    def _read(self, timeout):
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], max(timeout, 0))
            if not ready:
                raise TimeoutError("the browser does not answer")
            chunk = os.read(self._in, 1 << 20)
            if not chunk:
                raise RuntimeError("the browser went away")
            self._rest += chunk
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    # ---- what tests do -------------------------------------------------------------------------------------

    def open(self, path, width=1100, height=900, dark=False):
        """Load a file at a window size and wait until it has been drawn."""
        phone = width < 600
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )
        scheme = "dark" if dark else "light"
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events.clear()
        self.send("Page.navigate", url=path.resolve().as_uri())
        if not any(e["method"] == "Page.loadEventFired" for e in self.events):
            self._until(lambda m: m.get("method") == "Page.loadEventFired")
        return self

    def run(self, expression):
        """The value of a JavaScript expression."""
        found = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"])
        return found["result"].get("value")

    def place(self, selector):
        """Scroll an element into view; the middle of it in the window."""
        quoted = json.dumps(selector)
        return self.run(
            f"(async () => {{const e = document.querySelector({quoted});"
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame);"  # let the scrolling be over
            "const b = e.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2];})()"
        )

    def hover(self, selector, dx=0.0, dy=0.0):
        x, y = self.place(selector)
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x + dx, y=y + dy)

    def click(self, selector):
        x, y = self.place(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key)

    def requests(self):
        """Addresses that the page asked for, the page itself left out."""
        sent = [
            e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in sent[1:] if not url.startswith("data:")]

    def complaints(self):
        """Errors and messages in the console, and exceptions."""
        seen = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [e["params"] for e in self.events if e["method"] in seen]

    def screenshot(self, path, whole=True):
        shot = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self):
        try:
            self.session = None
            self.send("Browser.close")
        except (OSError, RuntimeError, TimeoutError):
            self.process.kill()
        self.process.wait(timeout=20)
        for descriptor in (self._in, self._out):
            os.close(descriptor)
        self.folder.cleanup()
