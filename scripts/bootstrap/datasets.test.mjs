import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { appsWithDatasets, installDatasets } from "./datasets.mjs";

let root;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "halfstep-datasets-"));
  mkdirSync(join(root, "apps", "without"), { recursive: true });
});
afterEach(() => rmSync(root, { recursive: true }));

const write = (path, content) => {
  mkdirSync(join(root, path, ".."), { recursive: true });
  writeFileSync(join(root, path), JSON.stringify(content));
};

/** An app whose data is a package in a folder beside it, as npm writes its lock file. */
const appWithData = (version = "1.0.0") => {
  const dependencies = { words: "file:words" };
  write("apps/text/datasets/package.json", { name: "text-datasets", dependencies });
  write("apps/text/datasets/words/package.json", { name: "words", version });
  write("apps/text/datasets/package-lock.json", {
    name: "text-datasets",
    lockfileVersion: 3,
    requires: true,
    packages: {
      "": { name: "text-datasets", dependencies },
      "node_modules/words": { resolved: "words", link: true },
      words: { version },
    },
  });
};

it("installs what is missing, and says so once", async () => {
  appWithData();
  expect(appsWithDatasets(root)).toEqual(["text"]);
  const lines = [];
  const say = (line) => lines.push(line);

  expect(await installDatasets(root, "text", say)).toEqual([]);
  expect(existsSync(join(root, "apps/text/datasets/node_modules/words/package.json"))).toBe(true);
  expect(lines[0]).toMatch(/^the data of text: node_modules is missing.*; installing it \(once\)$/);

  lines.length = 0;
  expect(await installDatasets(root, "text", say)).toEqual([]);
  expect(lines).toEqual([]);
});

it("tells why npm could not", async () => {
  appWithData();
  write("apps/text/datasets/package-lock.json", { lockfileVersion: 3, packages: {} });
  const failure = await installDatasets(root, "text", () => {});
  expect(failure.at(-1)).toMatch(/^the data of text could not be installed in /);
  expect(failure.length).toBeGreaterThan(1);
});
