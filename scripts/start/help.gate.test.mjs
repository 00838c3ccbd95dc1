// Help and wrong flags touch no data: each app is run where none of its data is, and nothing can be installed.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, it } from "vitest";
import { nodeFlags } from "../../tooling/vitest/node-flags.js";
import { bundleApp } from "./bundle.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const place = mkdtempSync(join(tmpdir(), "halfstep-help-"));
afterAll(() => rmSync(place, { recursive: true }));
symlinkSync(join(root, "node_modules"), join(place, "node_modules"));
// Neither npm nor anything else is found.
const nothing = join(place, "nothing");
mkdirSync(nothing);
const env = { PATH: nothing, HALFSTEP_NO_INSTALL: "1", HOME: place };

const commands = {
  digits: [[], ["evaluate"], ["predict"]],
  images: [[], ["predict"], ["export"]],
  "language-model": [[], ["train"], ["evaluate"], ["predict"], ["export"]],
  segmentation: [[], ["train"], ["evaluate"], ["predict"]],
  "super-resolution": [[], ["train"], ["evaluate"], ["predict"]],
  text: [[], ["train"], ["evaluate"], ["predict"]],
};

async function bundled(app) {
  const bundle = join(place, "apps", app, "dist", "main.js");
  await bundleApp(join(root, "apps", app, "src", "main.ts"), bundle);
  return (...args) => {
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [...nodeFlags, bundle, ...args],
      {
        ...{ env, cwd: nothing, encoding: "utf8" },
      },
    );
    return { status, stdout, stderr: stderr.trimEnd() };
  };
}

it.each(Object.entries(commands))("%s: nothing is read or installed", async (app, names) => {
  const run = await bundled(app);
  for (const name of names) {
    const help = run(...name, "--help");
    expect([help.status, help.stderr], `${name}`).toEqual([0, ""]);
    expect(help.stdout).toContain("Usage: ");
  }
  for (const name of names.length > 1 ? names.slice(1) : names) {
    const wrong = run(...name, "--no-such-flag");
    expect([wrong.status, wrong.stdout], `${name}`).toEqual([2, ""]);
    expect(wrong.stderr).toMatch(/^error: [^\n]+$/);
  }
  expect(existsSync(join(place, "apps", app, "datasets"))).toBe(false);
});

it("would show: data that is asked for cannot be installed there", async () => {
  const run = await bundled("text");
  const asked = run("train", "--task", "sentences", "--device", "cpu");
  expect(asked.status).toBe(2);
  expect(asked.stderr).toMatch(/\nerror: the data of text\/sentences could not be installed in /);
});
