import type { Hosts, Scope } from "./carrier.js";

/**
 * The distribution of ranks over hosts, as one rank sees it.
 * @param names the name of each rank's host
 */
export function hostsOf(names: readonly string[], rank: number): Hosts {
  const numbers = new Map<string, number>();
  for (const name of names) if (!numbers.has(name)) numbers.set(name, numbers.size);
  const hostOf = names.map((name) => numbers.get(name) as number);
  const sizes = [...numbers.values()].map((host) => hostOf.filter((each) => each === host).length);
  const local = hostOf.flatMap((host, each) => (host === hostOf[rank] ? [each] : []));
  return {
    hostOf,
    count: numbers.size,
    isEven: sizes.every((size) => size === sizes[0]),
    localRank: local.indexOf(rank),
    localSize: local.length,
  };
}

/**
 * The ranks of a scope, in order.
 * @throws RangeError for the peers of hosts with different numbers of ranks
 */
export function membersOf({ hostOf, isEven }: Hosts, scope: Scope, rank: number): number[] {
  const ranks = hostOf.map((_, each) => each);
  if (scope === "world") return ranks;
  if (scope === "host") return ranks.filter((each) => hostOf[each] === hostOf[rank]);
  if (!isEven)
    throw new RangeError("the scope peers needs equally many ranks on every host: use world");
  const localRank = (each: number): number =>
    ranks.filter((other) => other < each && hostOf[other] === hostOf[each]).length;
  return ranks.filter((each) => localRank(each) === localRank(rank));
}
