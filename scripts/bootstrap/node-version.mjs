/**
 * Whether a Node version is older than `engines` allows.
 * @param {string} version such as `20.19.3`
 * @param {string} range `>=` followed by a version of which parts may be absent
 */
export const nodeIsTooOld = (version, range) => {
  const have = version.split(".").map(Number);
  const want = range
    .replace(/^>=\s*/, "")
    .split(".")
    .map(Number);
  for (const [index, part] of want.entries()) {
    if (have[index] !== part) return have[index] < part;
  }
  return false;
};
