import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { browserPlan, chromium, findBrowser, firefox } from "./browsers.mjs";

const root = mkdtempSync(join(tmpdir(), "halfstep-browsers-"));
afterAll(() => rmSync(root, { recursive: true }));

const executable = (...path) => {
  const file = join(root, ...path);
  mkdirSync(join(file, ".."), { recursive: true });
  writeFileSync(file, "");
  chmodSync(file, 0o755);
  return file;
};

describe("findBrowser", () => {
  it("takes the one that is named, then the first on the path", () => {
    const named = executable("named", "chrome");
    const onPath = executable("bin", "chromium-browser");
    const PATH = `${join(root, "empty")}:${join(root, "bin")}`;
    expect(findBrowser(chromium, { CHROME_PATH: named, PATH })).toBe(named);
    expect(findBrowser(chromium, { PATH })).toBe(onPath);
    expect(findBrowser(chromium, { CHROME_PATH: join(root, "none"), PATH: "" })).toBe(undefined);
  });
});

describe("browserPlan", () => {
  const debian = {
    platform: "linux",
    root: true,
    mayInstall: true,
    apt: true,
    os: { ID: "debian" },
  };

  it("installs Debian's package", () => {
    expect(browserPlan(chromium, debian).commands?.at(-1)?.at(-1)).toBe("chromium");
    expect(browserPlan(firefox, debian).commands?.at(-1)?.at(-1)).toBe("firefox-esr");
  });

  it.each([
    ["without root", { root: false }, /as root: apt-get/],
    ["where nothing may be installed", { mayInstall: false }, /as root: apt-get/],
    ["on Ubuntu, whose package is a snap", { os: { ID: "ubuntu" } }, /CHROME_PATH/],
    ["elsewhere", { platform: "darwin" }, /CHROME_PATH/],
  ])("says what to do %s", (_, other, instructions) => {
    expect(browserPlan(chromium, { ...debian, ...other }).instructions).toMatch(instructions);
  });
});
