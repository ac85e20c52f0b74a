"""A page in Chromium without a window, used as a person does: opened, looked at, clicked, typed into."""
import base64
import fcntl
import json
import os
import pathlib
import subprocess

WIDTH, HEIGHT = 1280, 800


class Browser:
    """Chromium, spoken to in the DevTools protocol through a pair of pipes."""

    def __init__(self, program, folder):
        to_browser, self.out = os.pipe()
        self.into, from_browser = os.pipe()
        # Out of the way of 3 and 4, which the shell gives to the browser.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser, from_browser)]
        command = [program, "--headless=new", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run",
                   "--disable-background-networking", "--force-color-profile=srgb", f"--window-size={WIDTH},{HEIGHT}",
                   f"--user-data-dir={folder}/profile", "--disable-dev-shm-usage"]
        command += ["--no-sandbox"] if os.getuid() == 0 else []
        self.log = open(folder / "chromium.log", "wb")
        self.process = subprocess.Popen(["bash", "-c", f'exec "$@" 3<&{ends[0]} 4>&{ends[1]}', "-", *command],
                                        pass_fds=ends, stdout=self.log, stderr=self.log)
        for end in [to_browser, from_browser, *ends]:
            os.close(end)
        self.buffer, self.last_id, self.events, self.session = b"", 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=WIDTH, height=HEIGHT, deviceScaleFactor=1, mobile=False)

    def read(self):
        while b"\0" not in self.buffer:
            more = os.read(self.into, 1 << 16)
            if not more:
                raise RuntimeError(f"Chromium left: {pathlib.Path(self.log.name).read_text(errors='replace')[-2000:]}")
            self.buffer += more
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method, **parameters):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.last_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, page):
        """Opens a page; returns the milliseconds until it was drawn."""
        self.events.clear()
        self.call("Page.navigate", url=page.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self.read())
        return self.value("new Promise(done => requestAnimationFrame(() => setTimeout(() => done(performance.now()))))")

    def value(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def settle(self):
        """Waits until what was asked to be drawn is drawn."""
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.settle()

    def click_on(self, selector):
        x, y = self.value(f"""(() => {{ const at = document.querySelector({json.dumps(selector)}).getBoundingClientRect();
            return [at.left + at.width / 2, at.top + at.height / 2]; }})()""")
        self.click(x, y)

    def press(self, key, code=0, text=""):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, text=text if kind == "keyDown" else "")
        self.settle()

    def type(self, text):
        self.call("Input.insertText", text=text)
        self.settle()

    def picture(self, file):
        self.settle()
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def complaints(self):
        """Errors and warnings of the console, and requests for anything but the page."""
        found = []
        for event in self.events:
            method, params = event["method"], event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(json.dumps(params["exceptionDetails"])[:500])
            elif method == "Runtime.consoleAPICalled":
                found.append(f"console.{params['type']}: {params['args']}")
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
            elif method == "Network.requestWillBeSent" and params["type"] != "Document":
                found.append(f"a request: {params['request']['url']}")
        requests = [event for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return found + ([f"{len(requests)} requests"] if len(requests) > 1 else [])

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (RuntimeError, OSError):
            pass
        self.process.wait()
        self.log.close()
