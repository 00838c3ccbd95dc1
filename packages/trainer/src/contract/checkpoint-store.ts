import type { Checkpoint, CheckpointContent, CheckpointStore } from "../checkpoint/checkpoint.js";
import { differenceOf } from "./same-state.js";

/** Stores under test. */
export interface CheckpointStoreSubject {
  /** The name in the cases. */
  readonly name: string;
  /** An empty store that keeps the two newest checkpoints and the best. Earlier stores of the subject are no longer used. */
  create(): Promise<CheckpointStore>;
  /** The last created store as a later program opens it. */
  reopen(): Promise<CheckpointStore>;
  /** Changes a byte of the newest checkpoint of the last created store. */
  damageNewest(): Promise<void>;
}

/** A case of a contract. Rejects with an error that says what was expected and what was found. */
export interface ContractCase {
  readonly name: string;
  run(): Promise<void>;
}

const at = (step: number, more: Partial<CheckpointContent> = {}): CheckpointContent => ({
  ...{ step, microStep: 0, best: false, tables: "table" },
  parts: { model: { weight: Float32Array.of(step, -0, Number.NaN), names: ["a", null, true] } },
  ...more,
});

const rich = at(7, {
  microStep: 2,
  best: true,
  parts: {
    model: {
      half: { shape: [2, 1], dtype: "float16", data: Float32Array.of(1.5, -0) },
      mask: { shape: [], dtype: "uint32", data: Uint32Array.of(2 ** 32 - 1) },
      empty: new Float32Array(0),
    },
    optimizer: { lr: 0.1, big: Number.POSITIVE_INFINITY, negative: -0, groups: [{ step: 3 }] },
    "data-2": { text: "\u{1f642} \u0000", none: null },
  },
});

const require = (what: string, difference: string | undefined): void => {
  if (difference !== undefined) throw new Error(`${what}: ${difference} differs`);
};

async function expectNewest(store: CheckpointStore, expected: CheckpointContent): Promise<void> {
  const { checkpoint, skipped } = await store.newest();
  if (skipped.length > 0) throw new Error(`the newest was skipped: ${skipped[0]?.message}`);
  expectContent(checkpoint, expected);
}

function expectContent(found: Checkpoint | undefined, expected: CheckpointContent): void {
  if (!found) throw new Error(`step ${expected.step} was expected, and there is no checkpoint`);
  const { path, ...content } = found;
  if (path === "") throw new Error("a checkpoint has no path");
  require(`the checkpoint of step ${expected.step}`, differenceOf(content, expected));
}

async function rejectionOf(work: Promise<unknown>): Promise<Error> {
  try {
    await work;
  } catch (error) {
    return error as Error;
  }
  throw new Error("an error was expected");
}

type Run = (subject: CheckpointStoreSubject) => Promise<void>;

const cases: readonly (readonly [label: string, run: Run])[] = [
  [
    "is empty at first",
    async ({ create }) => {
      const { checkpoint, skipped } = await (await create()).newest();
      if (checkpoint || skipped.length > 0) throw new Error("an empty store has a checkpoint");
    },
  ],
  [
    "returns what was saved, bit by bit, also later",
    async ({ create, reopen }) => {
      const store = await create();
      await store.save(rich);
      await expectNewest(store, rich);
      await expectNewest(await reopen(), rich);
    },
  ],
  [
    "returns the newest, by step and micro-step",
    async ({ create }) => {
      const store = await create();
      for (const content of [at(2), at(10), at(10, { microStep: 1 }), at(10, { microStep: 11 })]) {
        await store.save(content);
        await expectNewest(store, content);
      }
    },
  ],
  [
    "replaces a checkpoint of the same step",
    async ({ create, reopen }) => {
      const store = await create();
      for (const other of [1, 2, 3, 4, 5, 6]) {
        const content = at(3, { best: other === 2, parts: { model: { other } } });
        await store.save(content);
        await expectNewest(store, content);
        await expectNewest(await reopen(), content);
        // Saved again, it stays.
        await store.save(content);
        await expectNewest(store, content);
      }
    },
  ],
  [
    "keeps its bytes, whatever is written into arrays that it returned",
    async ({ create }) => {
      const store = await create();
      await store.save(at(3));
      const { checkpoint } = await store.newest();
      const model = checkpoint?.parts.model as { readonly weight: Float32Array } | undefined;
      model?.weight.fill(5);
      await expectNewest(store, at(3));
    },
  ],
  [
    "removes checkpoints of later steps",
    async ({ create }) => {
      const store = await create();
      for (const step of [4, 8, 6]) await store.save(at(step));
      await expectNewest(store, at(6));
    },
  ],
  [
    "skips a damaged checkpoint, and replaces it",
    async ({ create, damageNewest }) => {
      const store = await create();
      await store.save(at(1));
      await store.save(at(2));
      await damageNewest();
      const { checkpoint, skipped } = await store.newest();
      if (skipped.length !== 1) throw new Error(`${skipped.length} were skipped, not 1`);
      expectContent(checkpoint, at(1));
      await store.save(at(2));
      await expectNewest(store, at(2));
    },
  ],
  [
    "refuses where none is whole",
    async ({ create, damageNewest }) => {
      const store = await create();
      await store.save(at(1));
      await damageNewest();
      const { name, message } = await rejectionOf(store.newest());
      if (name !== "CheckpointError") throw new Error(`found ${name}: ${message}`);
    },
  ],
  [
    "keeps two and the best",
    async ({ create, damageNewest }) => {
      const store = await create();
      await store.save(at(1));
      await store.save(at(2, { best: true }));
      for (const step of [3, 4, 5]) await store.save(at(step));
      await damageNewest();
      const { checkpoint } = await store.newest();
      expectContent(checkpoint, at(4));
    },
  ],
  [
    "saves nothing of what it cannot hold",
    async ({ create }) => {
      const store = await create();
      await store.save(at(1));
      const { name } = await rejectionOf(store.save(at(2, { parts: { model: { f() {} } } })));
      if (name !== "TypeError") throw new Error(`found ${name}, not TypeError`);
      await expectNewest(store, at(1));
    },
  ],
];

/**
 * The cases that every `CheckpointStore` must pass.
 *
 * @example
 * for (const { name, run } of checkpointStoreContract(subject)) test(name, run);
 */
export const checkpointStoreContract = (subject: CheckpointStoreSubject): readonly ContractCase[] =>
  cases.map(([label, run]) => ({ name: `${subject.name}: ${label}`, run: () => run(subject) }));
