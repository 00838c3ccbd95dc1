import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, renameSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { run } from "../../scripts/bootstrap/run.mjs";
import { findSwiftShader } from "../../scripts/lanes/swiftshader.mjs";
import { writeWhole } from "../../scripts/whole-file.mjs";

// Chromium on Mesa's software driver. Chromium accepts no adapter on the CPU but its own SwiftShader: a layer gives Mesa's driver the
// number of that device, and a mount namespace hides the real one.

/** Why Chromium cannot use Mesa's driver on this machine; undefined where it can. */
export const whyNoLavapipe = () => {
  if (process.platform !== "linux") return "not Linux";
  if (process.getuid() !== 0) return "it needs root, for a mount namespace";
  if (findSwiftShader() === undefined) return "no Chromium was found";
  const { error } = spawnSync("gcc", ["--version"]);
  return error && "it needs gcc";
};

/** What starts Chromium on Mesa's driver. @param {string} executable */
export const lavapipe = async (executable) => {
  const missing = whyNoLavapipe();
  if (missing) throw new Error(`Chromium cannot use Mesa's driver here: ${missing}`);
  const folder = join(tmpdir(), `halfstep-lavapipe-${process.getuid()}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const library = join(folder, "renamed-lavapipe.so");
  const source = fileURLToPath(new URL("renamed-lavapipe.c", import.meta.url));
  const { code, output } = await run(
    "gcc",
    ["-O2", "-shared", "-fPIC", "-o", `${library}.${process.pid}`, source, "-ldl"],
    { label: "gcc" },
  );
  if (code !== 0) throw new Error(`gcc cannot compile ${source}:\n${output}`);
  const manifest = join(folder, "manifest.json");
  const wrapper = join(folder, "chromium.sh");
  renameSync(`${library}.${process.pid}`, library);
  const ICD = { library_path: library, api_version: "1.3.0" };
  writeWhole(manifest, JSON.stringify({ file_format_version: "1.0.0", ICD }));
  const hidden = join(dirname(findSwiftShader()), "libvk_swiftshader.so");
  writeWhole(
    wrapper,
    `#!/bin/sh\nexec unshare -m sh -c 'mount --bind /dev/null ${hidden} && exec ${executable} "$@"' sh "$@"\n`,
  );
  chmodSync(wrapper, 0o700);
  return { executablePath: wrapper, env: { VK_DRIVER_FILES: manifest } };
};
