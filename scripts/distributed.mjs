// `npm run distributed -- -n 2 images DIR --fp16 --dynamic-loss-scale`: trains with an app on several processes of this machine, one
// rank each. On Debian and Ubuntu it installs Open MPI where there is none, as the software driver is installed. `--nproc_per_node=2` is
// the same as `-n 2`. Other launchers start `apps/APP/dist/main.js` themselves: see packages/distributed/README.md.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gpuEnvironment } from "./bootstrap/adapter.mjs";
import { datasetFolders, installDataset } from "./bootstrap/datasets.mjs";
import { prepareMpi } from "./bootstrap/mpi.mjs";
import { parseLaunch } from "./distributed/parse-launch.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const say = (line) => process.stderr.write(`distributed: ${line}\n`);

const launch = parseLaunch(process.argv.slice(2), join(root, "apps"));
if (launch.wrong !== undefined) {
  say(launch.wrong);
  process.exit(2);
}
const { ranks, app, args } = launch;
const mpi = await prepareMpi("openmpi", say);
if (mpi.missing !== undefined) {
  say(mpi.missing);
  process.exit(3);
}
// Once for all ranks, which would do it at the same time.
const folder = join(root, "apps", app);
const own = datasetFolders(root).filter((each) => each.startsWith(`${folder}/`));
const failures = (await Promise.all(own.map((each) => installDataset(each, say)))).flat();
if (failures.length > 0) {
  for (const line of failures) say(line);
  process.exit(2);
}
const { bundleApp } = await import("./start/bundle.mjs");
const bundle = join(folder, "dist", "main.js");
await bundleApp(join(folder, "src", "main.ts"), bundle);

const child = spawn(
  mpi.launcher,
  [
    // Cores may be fewer than ranks, and each rank has several threads.
    ...["--oversubscribe", "--bind-to", "none", "-n", `${ranks}`],
    ...[process.execPath, "--enable-source-maps", bundle, ...args],
  ],
  {
    stdio: "inherit",
    // npm runs scripts at the root, but paths are relative to the folder in which npm was called.
    cwd: process.env.INIT_CWD ?? process.cwd(),
    env: { ...process.env, ...gpuEnvironment(), ...mpi.env },
  },
);
// A terminal sends its signals to all.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => child.kill("SIGTERM"));
const [code] = await once(child, "close");
process.exitCode = code ?? 1;
