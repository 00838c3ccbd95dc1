import { mkdirSync } from "node:fs";
import { dirname, join, parse, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { writeWhole } from "../whole-file.mjs";

/**
 * Bundles an app and the packages of this repository, read from their sources, into one ES module with a source map. Packages
 * that npm installed are not bundled but imported at run time: `webgpu` is a native addon, and Node loads the others faster
 * than esbuild can copy them. Files appear whole, because an app may start while another process bundles it.
 * @param {string} entry
 * @param {string} outfile
 */
export const bundleApp = async (entry, outfile) => {
  const { inputs, files } = await bundle(entry, outfile);
  for (const { startedBy, source } of threads) {
    if (!inputs.includes(fromPackages(startedBy))) continue;
    const thread = join(dirname(outfile), `${parse(source).name}.js`);
    files.push(...(await bundle(fromPackages(source), thread)).files);
  }
  mkdirSync(dirname(outfile), { recursive: true });
  for (const { path, contents } of files) writeWhole(path, contents);
};

const fromPackages = (path) => fileURLToPath(new URL(`../../packages/${path}`, import.meta.url));

/** Threads are files of their own beside the program, by the modules that start them. */
const threads = [
  { startedBy: "distributed/src/mpi/init.ts", source: "distributed/src/mpi/mpi-thread.ts" },
  { startedBy: "trainer/src/trackers/wandb.ts", source: "trainer/src/trackers/wandb-thread.ts" },
];

async function bundle(entry, outfile) {
  const { outputFiles, metafile } = await build({
    write: false,
    metafile: true,
    entryPoints: [entry],
    outfile,
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node20",
    sourcemap: true,
    conditions: ["@halfstep/source"],
    logLevel: "warning",
    plugins: [
      {
        name: "installed-packages-stay-outside",
        setup(build) {
          build.onResolve({ filter: /^[^./]/ }, ({ path, kind }) =>
            kind === "entry-point" || path.startsWith("@halfstep/")
              ? undefined
              : { path, external: true },
          );
        },
      },
    ],
  });
  const inputs = Object.keys(metafile.inputs).map((path) => resolve(path));
  return { inputs, files: outputFiles };
}
