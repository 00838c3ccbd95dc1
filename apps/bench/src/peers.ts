import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Outside all workspaces, with a lock file of its own. Source and bundle lie equally deep in the app. */
export const peersFolder: string = fileURLToPath(new URL("../peers/", import.meta.url));

const bundledTfjs = "node_modules/.bundled/tfjs.cjs";

/** Installs the peers where they are missing or differ from the lock file. Returns the reason if that failed. */
export async function installPeers(
  folder: string,
  say: (line: string) => void,
): Promise<string | undefined> {
  try {
    if (!isInstalled(folder)) {
      say("installing the peers into apps/bench/peers (once, about 240 MB)");
      install(folder);
    }
    if (!existsSync(join(folder, bundledTfjs))) await bundleTfjs(folder);
    return undefined;
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: Buffer };
    const [first = message] = `${stderr ?? ""}`.split("\n").filter((line) => /error/i.test(line));
    const reason = first.replace(/^npm error /, "").split("\n", 1)[0];
    return `the peers could not be installed in apps/bench/peers: ${reason}`;
  }
}

type Locked = Record<string, { readonly version?: string; readonly optional?: boolean }>;

/** Whether npm's record of installed packages matches the lock file. */
export function isInstalled(folder: string): boolean {
  const record = join(folder, "node_modules", ".package-lock.json");
  if (!existsSync(record)) return false;
  const wanted = packagesOf(join(folder, "package-lock.json"));
  const present = packagesOf(record);
  return Object.entries(wanted).every(
    ([path, { version, optional }]) =>
      path === "" || optional || present[path]?.version === version,
  );
}

const packagesOf = (file: string): Locked => JSON.parse(readFileSync(file, "utf8")).packages;

function install(folder: string): void {
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  execFileSync("npm", ["ci", ...flags], {
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe"],
    shell: process.platform === "win32",
    timeout: 10 * 60_000,
  });
}

async function bundleTfjs(folder: string): Promise<void> {
  const { build } = await import("esbuild");
  await build({
    entryPoints: [join(folder, "tfjs-modules.mjs")],
    outfile: join(folder, bundledTfjs),
    bundle: true,
    platform: "node",
    format: "cjs",
    mainFields: ["module", "main"],
    logLevel: "silent",
  });
}
