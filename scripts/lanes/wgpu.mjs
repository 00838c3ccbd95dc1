import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { readInstallState, staleInstall } from "../bootstrap/install.mjs";
import { lastLines, run } from "../bootstrap/run.mjs";

/** The folder of what runs tests on wgpu. Its packages are large, and no workspace needs them. */
export const wgpuFolder = join(dirname(fileURLToPath(import.meta.url)), "..", "wgpu");

/**
 * Installs Deno and the driver of Firefox, unless they are up to date.
 * @returns {Promise<string | undefined>} what went wrong
 */
export const installWgpu = async () => {
  const { lock, installed } = readInstallState(wgpuFolder);
  if (staleInstall(lock, installed) === undefined) return undefined;
  const { code, output } = await run("npm", ["ci"], { cwd: wgpuFolder, label: "Deno, Firefox" });
  return code === 0 ? undefined : lastLines(output, 5).join("\n");
};
