/** Names that are compared: a state of another model has thousands. */
const mostCompared = 2000;
/** Longer names are no names of parameters. */
const longest = 200;

/**
 * The candidate that is most like a name, by the number of characters to change. Undefined where more than half of them would change.
 */
export function nearestName(name: string, candidates: readonly string[]): string | undefined {
  if (name.length > longest) return undefined;
  let best: string | undefined;
  let least = name.length / 2;
  for (const candidate of candidates.slice(0, mostCompared)) {
    if (candidate.length > longest) continue;
    const distance = editDistance(name, candidate);
    if (distance > least || (distance === least && best !== undefined)) continue;
    best = candidate;
    least = distance;
  }
  return best;
}

/** Levenshtein's distance: insertions, deletions and substitutions. */
function editDistance(a: string, b: string): number {
  let above = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const substituted = (above[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min((above[j] as number) + 1, (row[j - 1] as number) + 1, substituted));
    }
    above = row;
  }
  return above[b.length] as number;
}
