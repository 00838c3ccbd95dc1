import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { ByteSink } from "@halfstep/safetensors";
import { writeWholeFile } from "@halfstep/trainer/node";
import { isInstalled } from "./peers.js";

/** The files of the peers that are needed to run them, a tenth of their packages. */
const peerFiles = [
  "node_modules/.package-lock.json",
  "node_modules/.bundled/tfjs.cjs",
  "node_modules/@jax-js/jax",
  "node_modules/@petamoriken/float16",
  "node_modules/@tensorflow/tfjs-core/package.json",
  "node_modules/@tensorflow/tfjs-backend-wasm/dist/tfjs-backend-wasm.wasm",
  "node_modules/@tensorflow/tfjs-backend-wasm/dist/tfjs-backend-wasm-simd.wasm",
  "node_modules/@tensorflow/tfjs-backend-wasm/dist/tfjs-backend-wasm-threaded-simd.wasm",
  "node_modules/onnxruntime-web/package.json",
  "node_modules/onnxruntime-web/dist/ort.webgpu.bundle.min.mjs",
  "node_modules/onnxruntime-web/dist/ort-wasm-simd-threaded.asyncify.wasm",
];
const ownFiles = [
  "package-lock.json",
  "torch_lane.py",
  ...["browser", "versions", "jax", "tfjs", "onnx"].map((name) => `${name}.mjs`),
];

/**
 * Writes a tar with this machine's Node, Dawn, the benchmark, the installed peers, and the program that measures the blocks of products.
 * On another machine of the same platform, without Node or a network: `tar xf FILE && sh bench/run.sh --quick`, `sh bench/tune.sh`.
 */
export async function pack(file: string, program: string, peersFolder: string): Promise<void> {
  const stage = mkdtempSync(join(tmpdir(), "halfstep-pack-"));
  try {
    const root = join(stage, "bench");
    const copy = (from: string, to: string) => {
      mkdirSync(dirname(join(root, to)), { recursive: true });
      cpSync(from, join(root, to), { recursive: true, dereference: true });
    };
    copy(process.execPath, "node");
    copy(program, "app/dist/main.js");
    bundleTune(program, join(root, "app/dist/tune.js"));
    copyDawn(program, copy);
    const files = isInstalled(peersFolder) ? [...ownFiles, ...peerFiles] : ownFiles;
    for (const name of files) copy(join(peersFolder, name), join("app/peers", name));
    const loader = "/usr/lib/x86_64-linux-gnu/libvulkan.so.1";
    if (existsSync(loader)) copy(loader, "lib/libvulkan.so.1");
    writeFileSync(join(root, "app/package.json"), '{ "type": "module" }\n');
    writeFileSync(join(root, "run.sh"), runScript);
    writeFileSync(join(root, "tune.sh"), tuneScript);
    await writeWholeFile(file, (sink) => archive(stage, sink));
  } finally {
    rmSync(stage, { recursive: true });
  }
}

/** The folder `bench` of another as a tar, compressed. */
async function archive(folder: string, sink: ByteSink): Promise<void> {
  const tar = spawn("tar", ["-C", folder, "-cJ", "bench"], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, XZ_OPT: "-T0" },
  });
  const ended = once(tar, "close");
  for await (const piece of tar.stdout as AsyncIterable<Uint8Array>)
    for (let at = 0; at < piece.length; ) at += (await sink.write(piece.subarray(at))).bytesWritten;
  const [code] = await ended;
  if (code !== 0) throw new Error(`tar ended with ${code}`);
}

/** The program of `npm run tune`, from the repository in which the benchmark was bundled. */
function bundleTune(program: string, outfile: string): void {
  const { buildSync } = createRequire(program)("esbuild") as typeof import("esbuild");
  buildSync({
    entryPoints: [join(dirname(program), "../../../packages/kernels/bench/tune.ts")],
    ...{ bundle: true, platform: "node", format: "esm", external: ["webgpu"] },
    conditions: ["@halfstep/source"],
    outfile,
  });
}

/** Dawn's binaries for this platform only. */
function copyDawn(program: string, copy: (from: string, to: string) => void): void {
  const webgpu = dirname(createRequire(program).resolve("webgpu"));
  const binary = `dist/${process.platform}-${process.arch}`;
  for (const name of ["index.js", "package.json", binary])
    copy(join(webgpu, name), join("app/node_modules/webgpu", name));
}

/** Statements of a script that find the unpacked folder `here` and this machine's driver. */
const findDriver = `set -eu
here=$(cd "$(dirname "$0")" && pwd)
export XDG_RUNTIME_DIR="\${XDG_RUNTIME_DIR:-$here}"
export MESA_SHADER_CACHE_DIR="\${MESA_SHADER_CACHE_DIR:-$here/shaders}"
# The Vulkan loader of the machine where this was packed, where this one has none.
if ! ldconfig -p 2>/dev/null | grep -q libvulkan.so.1 && [ ! -e /usr/lib/x86_64-linux-gnu/libvulkan.so.1 ]; then
  export LD_LIBRARY_PATH="\${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$here/lib"
fi
# Containers may have NVIDIA's driver without the file that names it to the loader.
if ! ls /usr/share/vulkan/icd.d/*nvidia* /etc/vulkan/icd.d/*nvidia* >/dev/null 2>&1 &&
  ldconfig -p 2>/dev/null | grep -q libGLX_nvidia.so.0; then
  echo '{"file_format_version":"1.0.0","ICD":{"library_path":"libGLX_nvidia.so.0","api_version":"1.3.0"}}' >"$here/nvidia_icd.json"
  export VK_ADD_DRIVER_FILES="$here/nvidia_icd.json"
fi
`;

const runScript = `#!/bin/sh
# sh run.sh [flags]: the benchmark on this machine's GPU; results go to results/ beside this file.
${findDriver}exec "$here/node" "$here/app/dist/main.js" --out "$here/results" "$@"
`;

const tuneScript = `#!/bin/sh
# sh tune.sh: measures the blocks of matrix products on this machine's GPU, and writes src/matmul/measured-blocks.ts in tuned/
# beside this file, for the folder packages/kernels of the repository.
${findDriver}mkdir -p "$here/tuned/src/matmul"
cd "$here/tuned"
exec "$here/node" "$here/app/dist/tune.js" "$@"
`;
