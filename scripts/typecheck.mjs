// `npm run typecheck`: checks the types of all packages and apps. Those with the same options are one program, which checks a source once; a
// program for each would check the packages that it imports again.
import { spawn } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** The configurations of packages and apps, as TypeScript reads them, by their options. */
function programs() {
  const groups = new Map();
  for (const kind of ["packages", "apps"])
    for (const name of readdirSync(join(root, kind))) {
      const file = join(root, kind, name, "tsconfig.json");
      if (!existsSync(file)) continue;
      const { config, error } = ts.readConfigFile(file, ts.sys.readFile);
      if (error) throw new Error(ts.flattenDiagnosticMessageText(error.messageText, "\n"));
      const parsed = ts.parseJsonConfigFileContent(config, ts.sys, dirname(file), undefined, file);
      const key = JSON.stringify(config.compilerOptions ?? {});
      const group = groups.get(key) ?? { options: parsed.options, files: [], errors: [] };
      groups.set(key, group);
      group.files.push(...parsed.fileNames);
      group.errors.push(...parsed.errors);
    }
  return [...groups.values()];
}

/** Prints what is wrong in a program, and returns whether nothing is. */
function check({ options, files, errors }) {
  const program = ts.createProgram({ rootNames: files, options });
  const found = ts.sortAndDeduplicateDiagnostics([...errors, ...ts.getPreEmitDiagnostics(program)]);
  const host = {
    getCanonicalFileName: (name) => name,
    getCurrentDirectory: () => root,
    getNewLine: () => "\n",
  };
  if (found.length > 0) console.log(ts.formatDiagnostics(found, host).trimEnd());
  return found.length === 0;
}

const [chosen] = process.argv.slice(2);
if (chosen !== undefined) {
  process.exitCode = check(programs()[Number(chosen)]) ? 0 : 1;
} else {
  console.log("Checking the types of packages and apps");
  const codes = await Promise.all(
    programs().map(
      (_, i) =>
        new Promise((resolve) =>
          spawn(process.execPath, [fileURLToPath(import.meta.url), `${i}`], { stdio: "inherit" })
            .on("error", () => resolve(1))
            .on("close", resolve),
        ),
    ),
  );
  process.exitCode = codes.some((code) => code !== 0) ? 1 : 0;
}
