import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { readTorch, TorchFileError } from "../src/index.js";
import { op } from "../src/pickle/opcodes.js";
import { unpickle } from "../src/pickle/unpickle.js";
import {
  archive,
  bytesOf,
  dict,
  int,
  legacy,
  type Part,
  pickle,
  str,
  tensor,
  tuple,
} from "./build.js";
import { goldenPath } from "./golden.js";

/** The content of a file, or the typed error; any other goes on. */
async function read(bytes: Uint8Array): Promise<unknown> {
  try {
    return await (await readTorch(bytes)).readAll();
  } catch (error) {
    if (!(error instanceof TorchFileError)) throw error;
    return error;
  }
}

const files = ["every-kind.pt", "training.pth", "training.th", "module.pt"].map(
  (name) => new Uint8Array(readFileSync(goldenPath(name))),
);

test("a file with changed bytes is read or refused by a typed error, and nothing hangs", async () => {
  const change = fc.tuple(fc.nat(10_000), fc.nat(255));
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...files),
      fc.array(change, { minLength: 1, maxLength: 4 }),
      async (file, changes) => {
        const changed = file.slice();
        for (const [place, byte] of changes) changed[place % file.length] = byte;
        await read(changed);
      },
    ),
    { numRuns: 400 },
  );
});

test("a file that ends early is refused", async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...files), fc.nat(10_000), async (file, length) => {
      expect(await read(file.slice(0, length % file.length))).toBeInstanceOf(TorchFileError);
    }),
    { numRuns: 100 },
  );
});

test("pickles of random opcodes are read or refused by a typed error", async () => {
  const code = fc.oneof(
    fc.constantFrom<Part>(...Object.values(op).filter((each) => each !== op.STOP)),
    fc.constantFrom<Part>(
      int(3),
      str("weight"),
      tensor(),
      tuple(),
      dict({ a: tensor() }),
      [op.BINPUT, 1],
      [op.BINGET, 1],
    ),
    fc.nat(255),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(code, { maxLength: 30 }), fc.boolean(), async (parts, isLegacy) => {
      await read(isLegacy ? legacy(pickle(...parts)) : archive(pickle(...parts)));
    }),
    { numRuns: 400 },
  );
});

test("numbers are those of Python", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 127n), max: 2n ** 127n - 1n }), (value) => {
      const bytes = Array.from({ length: 16 }, (_, i) => Number((value >> BigInt(8 * i)) & 255n));
      const { value: found } = unpickle(pickle(op.LONG1, 16, bytes));
      expect(BigInt(found as bigint)).toBe(value);
      expect(typeof found).toBe(Number.isSafeInteger(Number(value)) ? "number" : "bigint");
    }),
    { numRuns: 50 },
  );
});

test.each<[string, readonly Part[]]>([
  ["lists in lists", [new Uint8Array(200_000).fill(op.EMPTY_LIST)]],
  ["marks", [new Uint8Array(200_000).fill(op.MARK)]],
  ["tuples around tuples", [op.NONE, new Uint8Array(200_000).fill(op.TUPLE1)]],
  [
    "a list that holds itself twice as often as the one before",
    [
      op.EMPTY_LIST,
      ...Array.from({ length: 1000 }, () => [
        op.BINPUT,
        0,
        op.EMPTY_LIST,
        op.BINGET,
        0,
        op.APPEND,
        op.BINGET,
        0,
        op.APPEND,
      ]),
    ],
  ],
  [
    "dicts of one dict",
    [
      op.EMPTY_DICT,
      ...Array.from({ length: 6 }, () => [
        [op.BINPUT, 0, op.EMPTY_DICT, op.MARK],
        ...Array.from({ length: 2000 }, (_, i) => [str(`${i}`), op.BINGET, 0]),
        op.SETITEMS,
      ]),
    ],
  ],
  ["a name of a hundred thousand prefixes", [dict({ ["module.".repeat(100_000)]: tensor() })]],
])("a bomb is refused or read at once: %s", async (_, parts) => {
  expect(await read(archive(bytesOf(op.PROTO, 2, ...parts, op.STOP)))).toBeDefined();
});

test("more objects than any model has are refused", () => {
  const many = new Uint8Array(2 ** 20 + 2).fill(op.EMPTY_LIST);
  expect(() => unpickle(pickle(many))).toThrow("the pickle has more than 1048576 objects");
});

test("a legacy file with a long pickle is read, and refused where it is too long", async () => {
  const state = dict({ notes: str("x".repeat(200_000)), weight: tensor() });
  const file = legacy(pickle(state));
  expect(await read(file)).toMatchObject({ weight: { shape: [4] } });
  await expect(readTorch(file, { maxPickleBytes: 1000 })).rejects.toMatchObject({
    problem: "too-large",
  });
  await expect(readTorch(archive(pickle(state)), { maxPickleBytes: 1000 })).rejects.toMatchObject({
    problem: "too-large",
  });
});
