/** Which lane runs when: rounds in which all of them are interleaved, divided among fresh processes of each. */

export interface Schedule {
  readonly rounds: number;
  /** Fresh processes of a lane that the rounds are divided among, one after the other. */
  readonly processes: number;
  /** Milliseconds that a repetition should last: quick calls are repeated within. */
  readonly repetition: number;
  /** Milliseconds that a lane may spend on one row: slow ones sit rounds out. */
  readonly budget: number;
}

/** The rounds of one process of each lane, from `first` to before `end`. */
export interface Share {
  readonly first: number;
  readonly end: number;
}

/** As equal as possible: the first processes have one more. */
export const shareOf = (process: number, { rounds, processes }: Schedule): Share => ({
  first: Math.ceil((process * rounds) / processes),
  end: Math.ceil(((process + 1) * rounds) / processes),
});

/**
 * The order of a turn: the lanes of a generation that open, or the entries of a round. Each warms and cools the caches for the next one, so odd
 * turns run backwards: what comes second in one turn comes first in the next. The first rounds of generations take turns likewise.
 */
export const orderOf = <T>(entries: readonly T[], turn: number): readonly T[] =>
  turn % 2 === 0 ? entries : entries.toReversed();

/** The work of one lane on one row. */
export interface Plan {
  /** Calls in a repetition. */
  readonly calls: number;
  /** The rounds that it takes part in, in order. */
  readonly rounds: readonly number[];
}

/**
 * What a lane can afford that takes `estimate` milliseconds a call. Unless it is renewed in later processes, it has the rounds of
 * the first alone.
 */
export function planOf(schedule: Schedule, estimate: number, isRenewed: boolean): Plan {
  const { repetition, budget } = schedule;
  const calls = Math.min(100, Math.max(1, Math.round(repetition / estimate)));
  const affordable = Math.floor(budget / (estimate * calls));
  const among = isRenewed ? schedule.rounds : shareOf(0, schedule).end;
  const rounds = Array.from({ length: among }, (_, round) => round);
  return { calls, rounds: rounds.filter((round) => takesPart(round, among, affordable)) };
}

/** Whether a lane that can afford so many of the rounds, at least two, runs in this one: they are spread evenly from the first on. */
const takesPart = (round: number, rounds: number, affordable: number): boolean => {
  const wanted = Math.min(rounds, Math.max(2, affordable));
  return Math.floor((round * wanted) / rounds) > Math.floor(((round - 1) * wanted) / rounds);
};
