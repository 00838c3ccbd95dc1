import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readInstallState, staleInstall } from "./install.mjs";
import { nodeIsTooOld } from "./node-version.mjs";

const lock = {
  packages: {
    "": { name: "root" },
    "packages/a": { version: "0.1.0" },
    "node_modules/@halfstep/a": { resolved: "packages/a", link: true },
    "node_modules/esbuild": { version: "1.0.0", integrity: "sha512-x" },
    "node_modules/@esbuild/aix-ppc64": { version: "1.0.0", optional: true },
    "node_modules/esbuild/node_modules/y": { version: "2.0.0", integrity: "sha512-y" },
  },
};

const installed = (change = {}) => {
  const { "": _root, "node_modules/@esbuild/aix-ppc64": _other, ...rest } = lock.packages;
  return { packages: { ...rest, ...change } };
};

describe("staleInstall", () => {
  it("accepts an install without other platforms' packages, and with packages that nobody asked for", () => {
    expect(
      staleInstall(lock, installed({ "node_modules/more": { version: "1.0.0" } })),
    ).toBeUndefined();
  });

  it.each([
    ["nothing installed", undefined, "missing or incomplete"],
    ["a missing package", installed({ "node_modules/esbuild": undefined }), "esbuild is not"],
    [
      "another version",
      installed({ "node_modules/esbuild/node_modules/y": { version: "1.9.0" } }),
      "y is 1.9.0 where package-lock.json wants 2.0.0",
    ],
    [
      "other contents",
      installed({ "node_modules/esbuild": { version: "1.0.0", integrity: "sha512-z" } }),
      "other contents",
    ],
    [
      "a copy in place of a workspace link",
      installed({ "node_modules/@halfstep/a": {} }),
      "@halfstep/a is linked",
    ],
  ])("says what is wrong: %s", (_, state, expected) => {
    expect(staleInstall(lock, state)).toContain(expected);
  });

  it("says that the lock file is missing", () => {
    expect(staleInstall(undefined, installed())).toContain("package-lock.json");
  });
});

describe("readInstallState", () => {
  it("takes an absent or half-written file for nothing installed", () => {
    const root = mkdtempSync(join(tmpdir(), "halfstep-"));
    try {
      writeFileSync(join(root, "package-lock.json"), JSON.stringify(lock));
      expect(readInstallState(root)).toEqual({ lock, installed: undefined });
      mkdirSync(join(root, "node_modules"));
      writeFileSync(join(root, "node_modules/.package-lock.json"), '{"packages":');
      expect(readInstallState(root)).toEqual({ lock, installed: undefined });
    } finally {
      rmSync(root, { recursive: true });
    }
  });
});

describe("nodeIsTooOld", () => {
  it.each([
    ["20.19.0", false],
    ["20.20.2", false],
    ["24.0.0", false],
    ["20.18.3", true],
    ["18.99.0", true],
  ])("%s against >=20.19: %s", (version, expected) => {
    expect(nodeIsTooOld(version, ">=20.19")).toBe(expected);
  });
});
