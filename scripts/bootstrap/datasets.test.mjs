import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";
import { datasetFolders, datasetPackage, installDataset } from "./datasets.mjs";

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
const appWithData = (folder = "apps/text/datasets") => {
  const dependencies = { words: "file:words" };
  write(`${folder}/package.json`, { name: "text-datasets", dependencies });
  write(`${folder}/words/package.json`, { name: "words", version: "1.0.0" });
  write(`${folder}/package-lock.json`, {
    name: "text-datasets",
    lockfileVersion: 3,
    requires: true,
    packages: {
      "": { name: "text-datasets", dependencies },
      "node_modules/words": { resolved: "words", link: true },
      words: { version: "1.0.0" },
    },
  });
  return join(root, folder);
};

it("installs what is missing, and says so once", async () => {
  const folder = appWithData();
  expect(datasetFolders(root)[0]).toBe(folder);
  const lines = [];
  const say = (line) => lines.push(line);

  expect(await installDataset(folder, say)).toEqual([]);
  expect(existsSync(join(folder, "node_modules/words/package.json"))).toBe(true);
  expect(lines[0]).toMatch(/^the data of text: node_modules is missing.*; installing it \(once\)$/);

  lines.length = 0;
  expect(await installDataset(folder, say)).toEqual([]);
  expect(lines).toEqual([]);
});

it("knows the parts of an app's data, and where a package of one is", async () => {
  const folder = appWithData("apps/text/datasets/mails");
  expect(datasetFolders(root)).toEqual([folder]);
  const url = new URL(`${pathToFileURL(folder)}/`);
  expect(await datasetPackage(url, "words")).toBe(realpathSync(join(folder, "words")));
});

it("tells why npm could not, to programs as an error of data", async () => {
  const folder = appWithData("apps/text/datasets/mails");
  write("apps/text/datasets/mails/package-lock.json", { lockfileVersion: 3, packages: {} });
  const failure = await installDataset(folder, () => {});
  expect(failure.at(-1)).toBe(`the data of text/mails could not be installed in ${folder}`);
  expect(failure.length).toBeGreaterThan(1);
  const asked = datasetPackage(new URL(`${pathToFileURL(folder)}/`), "words");
  await expect(asked).rejects.toThrow(/could not be installed in .*: check the network, or name/);
  await expect(asked).rejects.toSatisfy((error) => Symbol.for("@halfstep/DataError") in error);
});
