/** Whether a pattern such as "layer4.*.conv1" names a module, or one that the module is part of. */
export function matchesPath(pattern: string, path: string): boolean {
  return matches(namesOf(pattern), namesOf(path));
}

const namesOf = (path: string): readonly string[] => (path === "" ? [] : path.split("."));

function matches(pattern: readonly string[], path: readonly string[]): boolean {
  const [wanted, ...rest] = pattern;
  if (wanted === undefined) return true;
  if (wanted === "**")
    return matches(rest, path) || (path.length > 0 && matches(pattern, path.slice(1)));
  const [name, ...below] = path;
  return name !== undefined && (wanted === "*" || wanted === name) && matches(rest, below);
}
