import { existsSync, readFileSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { arch, availableParallelism, cpus, release, totalmem, type } from "node:os";
import { join } from "node:path";
import type { Machine, Versions } from "./summary.js";

const packages = [
  "formats",
  "grad-scaler",
  "safetensors",
  "torch-files",
  "autocast",
  "device",
  "kernels",
  "tensor",
  "optim",
  "nn",
  "models",
  "onnx",
  "trainer",
].map((name) => `@halfstep/${name}`);

/** The versions of the installed packages; packages that cannot be found are left out. */
export function versions(): Versions {
  const own = packages.map((name) => [name, versionOf(name, import.meta.url)] as const);
  const device = folderOf("@halfstep/device", import.meta.url);
  // Resolved from the device package, whose dependency it is: some installers hide it from others.
  const webgpu = device && versionOf("webgpu", join(realpathSync(device), "package.json"));
  return Object.fromEntries(
    [["node", process.versions.node] as const, ["webgpu", webgpu] as const, ...own].filter(
      (entry): entry is readonly [string, string] => entry[1] !== undefined,
    ),
  );
}

/** The machine that this process runs on. */
export const machine = (): Machine => ({
  os: `${type()} ${release()} ${arch()}`,
  cpu: cpus()[0]?.model.trim() ?? "unknown",
  cores: availableParallelism(),
  memoryBytes: totalmem(),
});

function versionOf(name: string, from: string): string | undefined {
  const folder = folderOf(name, from);
  if (folder === undefined) return undefined;
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).version;
}

/** The folder in which Node would find a package from a file, independent of its exports. */
const folderOf = (name: string, from: string): string | undefined =>
  (createRequire(from).resolve.paths(name) ?? [])
    .map((modules) => join(modules, name))
    .find((folder) => existsSync(join(folder, "package.json")));
