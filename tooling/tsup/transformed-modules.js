import { readFile } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { leaveOut } from "./leave-out.js";
import { markPure } from "./pure-initializers.js";
import { withoutIndentation } from "./shader-indentation.js";

/**
 * Reads the modules of a package as its build has them: initialisers are marked pure, shaders have no indentation, and a variant lacks
 * its parts. This is a plugin of esbuild.
 *
 * @param {string} folder of the package
 * @param {import("./index.js").Variant} [variant] Default: the whole package
 */
export const transformedModules = (folder, { leftOut, substitutes = {} } = {}) => ({
  name: "transformed-modules",
  setup(build) {
    build.onLoad({ filter: /\.ts$/ }, async (module) => {
      const path = relative(folder, module.path).split(sep).join("/");
      if (!path.startsWith("src/")) return undefined;
      const source = await readFile(join(folder, substitutes[path] ?? path), "utf8");
      const flat = withoutIndentation(source);
      return {
        contents: markPure(leftOut ? leaveOut(flat, path, leftOut) : flat),
        loader: "ts",
      };
    });
  },
});
