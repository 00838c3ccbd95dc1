/**
 * The example of a README: the ```ts block after the line `<!-- example -->`, and what it prints when a ```text block
 * follows it directly.
 * @param {string} readme
 * @returns {{ code: string, output: string | undefined } | undefined}
 */
export const readmeExample = (readme) => {
  const match = /^<!-- example -->\n+```ts\n(.*?)^```\n(?:\n+```text\n(.*?)^```)?/ms.exec(readme);
  return match === null ? undefined : { code: match[1], output: match[2] };
};

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
