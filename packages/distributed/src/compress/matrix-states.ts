import type { Exchange } from "../wire/exchange.js";

/** What compression keeps of one matrix between steps. */
export interface MatrixState {
  /** The mean of the right factor in the last step, from which the next one starts; undefined before the first. */
  readonly right: Float32Array | undefined;
  /** What this rank's gradients had besides what was exchanged, without the loss scale; undefined where that is nothing. */
  readonly residual: Float32Array | undefined;
}

/** The state of one matrix, of all ranks. */
export interface SavedMatrix {
  /** The place of its gradient in the flat gradients. */
  readonly offset: number;
  readonly right: Float32Array;
  /** By rank; empty without error feedback. */
  readonly residuals: readonly Float32Array[];
}

/** What compression keeps between steps, for checkpoints: the same on all ranks. */
export interface CompressionState {
  /** The matrices of each group of parameters, in the order in which groups were first exchanged. */
  readonly groups: readonly (readonly SavedMatrix[])[];
}

const unknown: MatrixState = { right: undefined, residual: undefined };

/** The states of matrices by their group, which is the memory of its gradients, and by their offset in it. */
export class MatrixStates {
  readonly #exchange: Exchange;
  readonly #groups = new Map<unknown, Map<number, MatrixState>>();
  /** Loaded states of all groups, also of those that were not exchanged yet. */
  #loaded: readonly ReadonlyMap<number, MatrixState>[] = [];

  constructor(exchange: Exchange) {
    this.#exchange = exchange;
  }

  /** The matrices of a group, whose states the caller replaces. */
  of(gradients: unknown): Map<number, MatrixState> {
    const known = this.#groups.get(gradients);
    if (known) return known;
    const states = new Map(this.#loaded[this.#groups.size]);
    this.#groups.set(gradients, states);
    return states;
  }

  /** Collects the residuals of all ranks. */
  async save(): Promise<CompressionState> {
    const groups: SavedMatrix[][] = [];
    for (const states of this.#groups.values()) {
      const matrices: SavedMatrix[] = [];
      for (const [offset, { right, residual }] of states)
        if (right)
          matrices.push({ offset, right, residuals: residual ? await this.#ofAll(residual) : [] });
      groups.push(matrices);
    }
    return { groups };
  }

  /**
   * Takes the states of a job. A rank of a job of the same size takes its own residuals. In a job of another size each takes the mean
   * of all: what the next mean of gradients makes up for is then the same.
   */
  load(state: CompressionState): void {
    requireState(state);
    const { groups } = state;
    const { rank, size } = this.#exchange.carrier;
    this.#loaded = groups.map(
      (matrices) =>
        new Map(
          matrices.map(({ offset, right, residuals }) => {
            const residual = residuals.length === size ? residuals[rank] : meanOf(residuals);
            return [offset, { right: right.slice(), residual: residual?.slice() }] as const;
          }),
        ),
    );
    for (const [index, states] of [...this.#groups.values()].entries()) {
      states.clear();
      for (const [offset, state] of this.#loaded[index] ?? []) states.set(offset, state);
    }
  }

  async #ofAll(residual: Float32Array): Promise<Float32Array[]> {
    const own = new Uint8Array(residual.buffer, residual.byteOffset, residual.byteLength);
    const received = await this.#exchange.collect(own, "residuals of gradients");
    return this.#exchange.carrier
      .members("world")
      .map((rank) => new Float32Array(received(rank).slice().buffer));
  }
}

/** @throws TypeError for what is no state: it may come from a file */
function requireState(state: CompressionState): void {
  const { groups } = (state ?? {}) as Partial<CompressionState>;
  const isWhole =
    Array.isArray(groups) && groups.every((each) => Array.isArray(each) && each.every(isMatrix));
  if (!isWhole)
    throw new TypeError(
      "this is no state of compressed gradients: pass what stateDict() of an exchange with the same compression gave",
    );
}

function isMatrix(saved: Partial<SavedMatrix> | null): boolean {
  const { offset, right, residuals } = saved ?? {};
  return (
    Number.isSafeInteger(offset) &&
    right instanceof Float32Array &&
    Array.isArray(residuals) &&
    residuals.every((each) => each instanceof Float32Array && each.length === residuals[0]?.length)
  );
}

/** The state of a matrix; an unknown one has none. */
export const stateOf = (states: ReadonlyMap<number, MatrixState>, offset: number): MatrixState =>
  states.get(offset) ?? unknown;

function meanOf(arrays: readonly Float32Array[]): Float32Array | undefined {
  return arrays[0]?.map((_, i) => {
    let sum = 0;
    for (const array of arrays) sum += array[i] as number;
    return sum / arrays.length;
  });
}
