import { join, posix } from "node:path";

/**
 * The entries of packages as their manifests export them: `{ name: "@halfstep/data/node", source: "…/packages/data/src/node.ts" }`.
 * @param {readonly { name: string, directory: string, manifest: Record<string, any> }[]} packages
 */
export const packageEntries = (packages) =>
  packages.flatMap(({ name, directory, manifest }) =>
    Object.entries(manifest.exports).flatMap(([part, conditions]) => {
      const source = conditions["@halfstep/source"];
      return source === undefined
        ? []
        : [{ name: posix.join(name, part), source: join(directory, source) }];
    }),
  );
