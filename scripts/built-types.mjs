// Compiles a program that imports every public package as a browser program does: without types of Node, with the library of
// its own target only, and with every declaration checked. Needs a build.
import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { publicPackages } from "./gates/packages.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
// Below the root, so that the packages are found.
const folder = join(root, "node_modules", ".types");

/** Parts of packages that only Node runs. */
const needsNode = new Set(["./node", "./cli"]);

const modules = publicPackages(root).flatMap(({ name, manifest }) =>
  Object.keys(manifest.exports)
    .filter((part) => !needsNode.has(part))
    .map((part) => join(name, part)),
);
const compilerOptions = {
  ...{ target: "es2022", lib: ["es2022", "dom"], types: [], noEmit: true },
  ...{ module: "nodenext", strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false },
};

mkdirSync(folder, { recursive: true });
writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
writeFileSync(
  join(folder, "program.ts"),
  modules.map((name, i) => `export * as m${i} from "${name}";\n`).join(""),
);
writeFileSync(
  join(folder, "tsconfig.json"),
  JSON.stringify({ compilerOptions, files: ["program.ts"] }),
);
const { status } = spawnSync("npx", ["tsc", "--project", folder], {
  cwd: root,
  stdio: "inherit",
  shell: process.platform === "win32",
});
rmSync(folder, { recursive: true });
process.exitCode = status ?? 1;
