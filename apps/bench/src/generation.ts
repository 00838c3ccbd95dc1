import { difference, differenceFromDefinition } from "./compare.js";
import type { Entry } from "./entry.js";
import { LaneClient } from "./lane-client.js";
import { type LaneName, ours } from "./lanes/names.js";
import { orderOf, planOf, type Schedule, shareOf } from "./rounds.js";
import type { Case } from "./workload.js";

export interface GenerationOptions extends Schedule {
  readonly peersFolder: string;
  /** The bundle, which a lane's process runs again. */
  readonly program: string;
  /** Milliseconds after which a lane that does not answer is given up. */
  readonly patience: number;
  readonly say: (line: string) => void;
}

/** The findings of the first generation. */
export interface Findings {
  /** Of the lanes that opened, and why others did not. */
  readonly versions: Map<string, string>;
  readonly missing: Map<string, string>;
  /** Our float32 results, with which those of all lanes are compared, in later generations too. */
  readonly references: Map<Case, Float32Array>;
}

/**
 * One fresh process of each lane. Lanes that do not open in the first generation, 0, are missing; what fails or differs in a later
 * one loses its rows.
 */
export class Generation {
  readonly #number: number;
  readonly #findings: Findings;
  readonly #options: GenerationOptions;
  readonly #clients: Map<LaneName, LaneClient> = new Map();

  constructor(number: number, findings: Findings, options: GenerationOptions) {
    this.#number = number;
    this.#findings = findings;
    this.#options = options;
  }

  /** Checks, warms up and times the entries that take part in this generation's share of the rounds. */
  async run(entries: readonly Entry[]): Promise<void> {
    const { first, end } = shareOf(this.#number, this.#options);
    const isIn = (round: number): boolean => first <= round && round < end;
    const taking = entries.filter(
      ({ refusal, plan }) => !refusal && (this.#number === 0 || plan?.rounds.some(isIn)),
    );
    try {
      const lanes = [...new Set(taking.map(({ lane }) => lane))];
      for (const lane of orderOf(lanes, this.#number)) await this.#open(lane, taking);
      for (const entry of taking)
        await this.#attempt(entry, (client) => this.#check(entry, client));
      for (const entry of orderOf(taking, this.#number))
        await this.#attempt(entry, (client) => this.#warmUp(entry, client));
      for (let round = first; round < end; round++)
        for (const entry of orderOf(taking, this.#number + round - first))
          if (entry.plan?.rounds.includes(round))
            await this.#attempt(entry, (client) => this.#time(entry, client, round));
    } finally {
      await Promise.all([...this.#clients.values()].map((client) => client.close()));
    }
  }

  async #open(lane: LaneName, taking: readonly Entry[]): Promise<void> {
    const { program, patience, peersFolder } = this.#options;
    const { versions, missing } = this.#findings;
    const client = new LaneClient(lane, program, patience);
    this.#clients.set(lane, client);
    try {
      versions.set(lane.name, (await client.open(peersFolder)).version);
    } catch (error) {
      if (lane === ours && this.#number === 0) throw error;
      this.#clients.delete(lane);
      await client.close();
      if (this.#number === 0) missing.set(lane.name, (error as Error).message);
      else for (const entry of taking) if (entry.lane === lane) this.#fail(entry, error);
    }
  }

  async #attempt(entry: Entry, work: (client: LaneClient) => Promise<void>): Promise<void> {
    const client = this.#clients.get(entry.lane);
    if (!client || entry.refusal) return;
    try {
      await work(client);
    } catch (error) {
      this.#fail(entry, error);
    }
  }

  async #check(entry: Entry, client: LaneClient): Promise<void> {
    const { chosen, subject, lane } = entry;
    const { references } = this.#findings;
    const start = performance.now();
    const { result } = await client.prepare(subject);
    entry.preparation += performance.now() - start;
    if (!result) {
      entry.refusal = { status: "absent" };
      return;
    }
    if (lane === ours && subject.precision === "float32" && !references.has(chosen))
      references.set(chosen, result);
    const reference = references.get(chosen);
    const apart = Math.max(
      reference ? difference(result, reference) : 0,
      chosen.expected
        ? differenceFromDefinition(result, (index) => chosen.expected?.(index) as number)
        : 0,
    );
    entry.difference = Math.max(entry.difference, apart);
    const limit = chosen.tolerance[subject.precision];
    if (apart <= limit) return;
    entry.refusal = { status: "wrong", difference: apart };
    this.#say(entry, `differs by ${apart.toPrecision(2)}, where ${limit} is allowed: not timed`);
  }

  async #warmUp(entry: Entry, client: LaneClient): Promise<void> {
    const start = performance.now();
    const warm = await client.warmUp(entry.subject, this.#number > 0);
    entry.preparation += performance.now() - start;
    entry.warmedUp.set(this.#number, warm);
    if (this.#number > 0) return;
    const { processes, budget } = this.#options;
    // An earlier Halfstep is compared process by process with this one, however slow both are to prepare.
    const isHalfstep = entry.lane.library === "halfstep";
    const isRenewed = isHalfstep || (processes - 1) * entry.preparation <= budget;
    entry.plan = planOf(this.#options, warm.milliseconds, isRenewed);
  }

  async #time(entry: Entry, client: LaneClient, round: number): Promise<void> {
    const timed = await client.time(entry.subject, entry.plan?.calls as number);
    entry.samples.push({ process: this.#number, round, ...timed });
  }

  #fail(entry: Entry, error: unknown): void {
    const { message } = error as Error;
    const reason = this.#number === 0 ? message : `process ${this.#number + 1}: ${message}`;
    entry.refusal = { status: "failed", reason };
    this.#say(entry, `failed: ${message}`);
  }

  #say({ subject, lane }: Entry, what: string): void {
    const where = this.#number === 0 ? "" : ` in process ${this.#number + 1}`;
    this.#options.say(`  ${subject.name} ${subject.precision}: ${lane.name}${where} ${what}`);
  }
}
