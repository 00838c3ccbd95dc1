import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { chromiumFolders, findSwiftShader } from "./swiftshader.mjs";

const root = mkdtempSync(join(tmpdir(), "halfstep-chromium-"));
afterAll(() => rmSync(root, { recursive: true }));

const chromiumIn = (...path) => {
  const folder = join(root, ...path);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "vk_swiftshader_icd.json"), "{}");
  return join(folder, "vk_swiftshader_icd.json");
};

describe("findSwiftShader", () => {
  it.each([
    ["beside the executable that is named", "named", (at) => ({ CHROME_PATH: join(at, "chrome") })],
    ["of Playwright", "ms-playwright/chromium-1200/chrome-linux", () => ({ XDG_CACHE_HOME: root })],
    [
      "of Puppeteer",
      ".cache/puppeteer/chrome/linux-150/chrome-linux64",
      () => ({ HOME: root, PUPPETEER_CACHE_DIR: join(root, ".cache/puppeteer") }),
    ],
  ])("finds the one %s", (_, folder, envOf) => {
    const found = chromiumIn(...folder.split("/"));
    const folders = chromiumFolders(envOf(join(root, folder)));
    // A Chromium of this machine may come first.
    const own = folders.filter((each) => each.folder.startsWith(root));
    expect(findSwiftShader(own)).toBe(found);
  });

  it("prefers a named Chromium to an installed one", () => {
    const [first] = chromiumFolders({ CHROME_BIN: "/here/chrome", HOME: "/home/a" });
    expect(first).toEqual({ folder: "/here", levels: 0 });
  });
});
