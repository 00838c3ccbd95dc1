/**
 * The examples of a README: each ```ts block after a line `<!-- example -->`, and its output if a ```text block follows
 * directly.
 * @param {string} readme
 * @returns {{ code: string, output: string | undefined }[]}
 */
export const readmeExamples = (readme) =>
  [...readme.matchAll(/^<!-- example -->\n+```ts\n(.*?)^```\n(?:\n+```text\n(.*?)^```)?/gms)].map(
    ([, code, output]) => ({ code, output }),
  );

/** The packages that a module imports, without subpaths: `@halfstep/device/node` counts as `@halfstep/device`. */
export const importedPackages = (code) => {
  const specifiers = [...code.matchAll(/\bfrom\s+"([^"]+)"|\bimport\s*\(?\s*"([^"]+)"/g)].map(
    ([, from, bare]) => from ?? bare,
  );
  return [
    ...new Set(
      specifiers
        .filter((specifier) => !/^(node:|[./])/.test(specifier))
        .map((specifier) =>
          specifier
            .split("/")
            .slice(0, specifier.startsWith("@") ? 2 : 1)
            .join("/"),
        ),
    ),
  ];
};
