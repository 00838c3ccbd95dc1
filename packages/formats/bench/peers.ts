/** Installs the peers that are not dev dependencies next to the benchmark, outside all workspaces. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { writeWhole } from "../../../scripts/whole-file.mjs";

export const peersFolder: string = join(process.cwd(), "bench/peers");

const manifest = {
  private: true,
  dependencies: {
    "@stdlib/number-float32-base-to-float16": "0.1.1",
    "@stdlib/number-float64-base-to-float16": "0.1.2",
    // A Node that has Float16Array.
    node: "24.21.0",
  },
};

/** Installs the peers where they are missing or outdated. Returns the path of their Node. */
export function installPeers(): string {
  const file = join(peersFolder, "package.json");
  const text = JSON.stringify(manifest, null, 2);
  const node = join(peersFolder, "node_modules/node/bin/node");
  if (!existsSync(node) || readFileSync(file, "utf8") !== text) {
    mkdirSync(peersFolder, { recursive: true });
    writeWhole(file, text);
    const flags = ["--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"];
    execFileSync("npm", ["install", ...flags], { cwd: peersFolder, stdio: "inherit" });
  }
  return node;
}
