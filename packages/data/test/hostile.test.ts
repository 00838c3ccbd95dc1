// Files that lie, do not end, or are no files at all: every class of them, made here, against every reader of files.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DataError } from "../src/error.js";
import { cifar10, fileBytes, imageFolder, mnist, readIdxFile } from "../src/node.js";

let root: string;
let socket: Server;
const at = (...parts: string[]): string => join(root, ...parts);
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "halfstep-hostile-"));
  socket = createServer();
  await new Promise<void>((done) => socket.listen(at("socket"), done));
});
afterAll(async () => {
  await new Promise((done) => socket.close(done));
  rmSync(root, { recursive: true });
});

/** One line that begins with the path. */
async function refused(path: string, read: () => Promise<unknown>): Promise<string> {
  const error = await read().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error, path).toBeInstanceOf(DataError);
  const { message } = error as DataError;
  expect(message).toContain(path);
  expect(message).not.toContain("\n");
  expect(message.length - path.length).toBeLessThan(250);
  return message;
}

/** What is no regular file, by what it is, each made at a path. */
const irregular: Readonly<Record<string, (path: string) => void>> = {
  "a folder": (path) => mkdirSync(path),
  "a FIFO": (path) => void execFileSync("mkfifo", [path]),
  "a socket": (path) => symlinkSync(at("socket"), path),
  "a device": (path) => symlinkSync("/dev/zero", path),
  "a link to itself": (path) => symlinkSync(path, path),
  "a link to nothing": (path) => symlinkSync(`${path}-gone`, path),
};

describe("what is no file", () => {
  const kinds = Object.entries(irregular);

  it.each(kinds)("%s is refused by every reader, which waits for nothing", async (_, make) => {
    const folder = mkdtempSync(at("irregular-"));
    const inFolder = (name: string): string => join(folder, name);
    for (const name of ["plain", "packed.gz", "data_batch_1.bin"]) make(inFolder(name));
    for (const i of [2, 3, 4, 5]) writeFileSync(inFolder(`data_batch_${i}.bin`), "");
    writeFileSync(inFolder("test_batch.bin"), "");
    await refused(inFolder("plain"), () => fileBytes(inFolder("plain")));
    await refused(inFolder("plain"), () => readIdxFile(inFolder("plain")));
    await refused(inFolder("packed.gz"), () => readIdxFile(inFolder("packed.gz")));
    await refused(inFolder("data_batch_1.bin"), () => cifar10(folder));
  });

  it.each(kinds.slice(1))(
    "%s among images is refused, and elsewhere passed over",
    async (_, make) => {
      const folder = mkdtempSync(at("images-"));
      mkdirSync(join(folder, "a"));
      writeFileSync(join(folder, "a", "1.png"), "");
      make(join(folder, "a", "notes.txt"));
      expect((await imageFolder(folder)).files).toHaveLength(1);
      make(join(folder, "a", "2.jpg"));
      await refused(join(folder, "a", "2.jpg"), () => imageFolder(folder));
    },
  );

  it("a folder that is named like an image is a folder", async () => {
    mkdirSync(at("named", "a", "1.png"), { recursive: true });
    writeFileSync(at("named", "a", "1.png", "2.png"), "");
    expect((await imageFolder(at("named"))).files).toEqual([at("named", "a", "1.png", "2.png")]);
  });

  it("links that lead in a circle, or that double with every folder, are refused", async () => {
    mkdirSync(at("circle", "a"), { recursive: true });
    writeFileSync(at("circle", "a", "1.png"), "");
    symlinkSync("..", at("circle", "a", "up"));
    // The folder itself is one more step away.
    await refused(at("circle", "a", "up", "a"), () => imageFolder(at("circle")));
    for (let i = 0; i < 12; i++) mkdirSync(at("doubling", "a", `${i}`), { recursive: true });
    for (let i = 0; i < 11; i++)
      for (const name of ["left", "right"])
        symlinkSync(at("doubling", "a", `${i + 1}`), at("doubling", "a", `${i}`, name));
    expect(await refused(at("doubling"), () => imageFolder(at("doubling")))).toMatch(
      /leads to .*, which the class has already: remove the link$/,
    );
  });

  it("files of more bytes than a reader takes are refused before they are read", async () => {
    writeFileSync(at("long.bin"), "");
    truncateSync(at("long.bin"), 2 ** 40);
    expect(await refused(at("long.bin"), () => fileBytes(at("long.bin")))).toMatch(
      /has 1099511627776 bytes, and at most 2147483647 are read$/,
    );
    await refused(at("long.bin"), () => fileBytes(at("long.bin"), { most: 9 }));
  });
});

const header = (type: number, ...shape: number[]): Buffer => {
  const bytes = Buffer.alloc(4 + 4 * shape.length);
  bytes.set([0, 0, type, shape.length]);
  for (const [axis, size] of shape.entries()) bytes.writeUInt32BE(size, 4 + 4 * axis);
  return bytes;
};

describe("IDX files that lie", () => {
  const whole = Buffer.concat([header(8, 3, 2, 2), Buffer.alloc(12, 7)]);

  /** Every way to cut a file short or to change one of its header's bytes, and some to make it longer. */
  function* lies(): Generator<readonly [name: string, bytes: Buffer]> {
    for (let length = 0; length < whole.length; length++)
      yield [`cut after ${length}`, whole.subarray(0, length)];
    for (let i = 0; i < 16; i++)
      for (const value of [0, 1, 127, 255]) {
        const bytes = Buffer.from(whole);
        bytes[i] = value;
        if (!bytes.equals(whole)) yield [`byte ${i} is ${value}`, bytes];
      }
    yield ["a byte more", Buffer.concat([whole, Buffer.alloc(1)])];
    yield ["twice", Buffer.concat([whole, whole])];
    for (const size of [2 ** 31, 2 ** 32 - 1])
      for (const rank of [1, 3, 255])
        yield [`${rank} × ${size}`, header(14, ...new Array<number>(rank).fill(size))];
  }

  it("are refused, plain and compressed", async () => {
    let count = 0;
    for (const [name, bytes] of lies()) {
      for (const [ending, content] of [
        ["", bytes],
        [".gz", gzipSync(bytes)],
      ] as const) {
        const path = at(`lie${ending}`);
        writeFileSync(path, content);
        await refused(path, () => readIdxFile(path)).catch((error) => {
          throw new Error(`${name}${ending}: ${error.message}`);
        });
        count++;
      }
    }
    expect(count).toBeGreaterThan(160);
  });

  it("of compressed ones every cut and every changed byte is refused, or changes no data", async () => {
    const packed = gzipSync(whole);
    const path = at("cut.gz");
    for (let i = 0; i < packed.length; i++) {
      writeFileSync(path, packed.subarray(0, i));
      await refused(path, () => readIdxFile(path));
      const changed = Buffer.from(packed);
      changed[i] = (packed[i] as number) ^ 0xff;
      writeFileSync(path, changed);
      const read = await readIdxFile(path).catch((error: unknown) => error);
      if (read instanceof Error) expect(read).toBeInstanceOf(DataError);
      // gzip's own header has a time and the like, which say nothing of the data.
      else expect(read).toMatchObject({ shape: [3, 2, 2], data: new Uint8Array(12).fill(7) });
    }
  });

  it("bombs are not inflated: neither what a small header hides, nor what a true one announces", async () => {
    // Members of gzip may follow each other: 2 MB that become 2 GiB.
    const mebibyte = gzipSync(Buffer.alloc(2 ** 20));
    const gibibytes = new Array<Buffer>(2048).fill(mebibyte);
    const before = process.resourceUsage().maxRSS;
    writeFileSync(at("hidden.gz"), Buffer.concat([gzipSync(header(8, 100)), ...gibibytes]));
    expect(await refused(at("hidden.gz"), () => readIdxFile(at("hidden.gz")))).toContain(
      "has bytes after its data",
    );
    writeFileSync(at("true.gz"), Buffer.concat([gzipSync(header(8, 2 ** 31)), ...gibibytes]));
    expect(await refused(at("true.gz"), () => readIdxFile(at("true.gz")))).toMatch(
      /has \d+ bytes that would become 2147483656: if they are meant, decompress it first$/,
    );
    // KiB. One of the two alone would have taken two million.
    expect(process.resourceUsage().maxRSS - before).toBeLessThan(2 ** 18);
  });

  it("images of no pixels are refused", async () => {
    mkdirSync(at("hollow"));
    for (const prefix of ["train", "t10k"]) {
      writeFileSync(at("hollow", `${prefix}-images-idx3-ubyte`), header(8, 5, 0, 0));
      const labels = Buffer.concat([header(8, 5), Buffer.alloc(5)]);
      writeFileSync(at("hollow", `${prefix}-labels-idx1-ubyte`), labels);
    }
    await refused(at("hollow"), () => mnist(at("hollow")));
  });
});
