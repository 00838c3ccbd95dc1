import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { expect, it } from "vitest";

const from = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

const { peerDependenciesMeta } = JSON.parse(readFileSync(from("../package.json"), "utf8")) as {
  readonly peerDependenciesMeta: Readonly<Record<string, unknown>>;
};

/** Packages that a program can do without, and of which this package imports commander at once: `/cli` is made on top of it. */
const optional = [...Object.keys(peerDependenciesMeta), "webgpu"].filter(
  (name) => name !== "commander",
);

it.each(["index", "node", "cli", "report", "browser"])(
  "%s is bundled where no optional package is installed",
  async (entry) => {
    const { errors, warnings } = await build({
      ...{ entryPoints: [from(`../src/${entry}.ts`)], bundle: true, write: false },
      ...{ format: "esm", platform: "node", conditions: ["@halfstep/source"], logLevel: "silent" },
      alias: Object.fromEntries(optional.map((name) => [name, `not-installed/${name}`])),
      plugins: [
        {
          name: "other-packages-stay-outside",
          setup: ({ onResolve }) =>
            onResolve({ filter: /^[^./]/ }, ({ path, kind }) =>
              kind === "entry-point" || /^(@halfstep|not-installed)\//.test(path)
                ? undefined
                : optional.includes(path)
                  ? undefined
                  : { path, external: true },
            ),
        },
      ],
    });
    expect({ errors, warnings }).toEqual({ errors: [], warnings: [] });
  },
);
