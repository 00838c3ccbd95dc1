import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { installPeers, isInstalled, peersFolder } from "./peers.js";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
  vi.unstubAllEnvs();
});

const lockOf = (version: string) =>
  JSON.stringify({
    name: "peers",
    lockfileVersion: 3,
    packages: {
      "": { name: "peers", dependencies: { "no-such-package-here": "1.0.0" } },
      "node_modules/no-such-package-here": { version },
    },
  });

function folderWith(installed: string | undefined): string {
  const folder = mkdtempSync(join(tmpdir(), "halfstep-peers-"));
  folders.push(folder);
  const manifest = { name: "peers", dependencies: { "no-such-package-here": "1.0.0" } };
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  writeFileSync(join(folder, "package-lock.json"), lockOf("1.0.0"));
  if (installed !== undefined) {
    mkdirSync(join(folder, "node_modules"));
    writeFileSync(join(folder, "node_modules", ".package-lock.json"), lockOf(installed));
  }
  return folder;
}

test("installed is what the lock file wants", () => {
  expect(isInstalled(folderWith(undefined))).toBe(false);
  expect(isInstalled(folderWith("0.9.0"))).toBe(false);
  expect(isInstalled(folderWith("1.0.0"))).toBe(true);
});

test("without a network the reason is one line", async () => {
  vi.stubEnv("npm_config_offline", "true");
  const said: string[] = [];
  const reason = await installPeers(folderWith(undefined), (line) => said.push(line));
  expect(said).toEqual(["installing the peers into apps/bench/peers (once, about 240 MB)"]);
  expect(reason).toMatch(/^the peers could not be installed in apps\/bench\/peers: .+$/);
});

test("every peer is pinned", () => {
  const { dependencies } = JSON.parse(readFileSync(join(peersFolder, "package.json"), "utf8"));
  const loose = Object.values(dependencies).filter((v) => !/^\d+\.\d+\.\d+$/.test(v as string));
  expect(loose).toEqual([]);
});
