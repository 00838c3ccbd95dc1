import type { CheckpointArchive } from "@halfstep/trainer";
import { indexedDbCheckpoints, opfsCheckpoints } from "@halfstep/trainer/browser";
import { type CheckpointStoreSubject, checkpointStoreContract } from "@halfstep/trainer/testing";

/** Where a browser keeps checkpoints. */
export type StoreKind = "opfs" | "indexedDb";

/** The store of a run. */
export const storeOf = (kind: StoreKind, run: string, keep?: number): CheckpointArchive =>
  ({ opfs: opfsCheckpoints, indexedDb: indexedDbCheckpoints })[kind](
    run,
    keep === undefined ? {} : { keep },
  );

const flipLast = (bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> => {
  bytes[bytes.length - 1] = (bytes.at(-1) as number) ^ 1;
  return bytes;
};

async function damageInOpfs(run: string): Promise<void> {
  const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle(run);
  const names: string[] = [];
  for await (const name of folder.keys()) names.push(name);
  const file = await folder.getFileHandle(names.sort().at(-1) as string);
  const bytes = new Uint8Array(await (await file.getFile()).arrayBuffer());
  const writable = await file.createWritable();
  await writable.write(flipLast(bytes));
  await writable.close();
}

function damageInIndexedDb(run: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open(run);
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const db = opening.result;
      const transaction = db.transaction("files", "readwrite");
      transaction.oncomplete = () => {
        db.close();
        resolve();
      };
      const cursor = transaction.objectStore("files").openCursor(null, "prev");
      cursor.onsuccess = () => cursor.result?.update(flipLast(cursor.result.value));
    };
  });
}

/** The cases of the contract that fail. */
export async function contractFailures(kind: StoreKind): Promise<readonly string[]> {
  let runs = 0;
  const run = (): string => `contract-${runs}`;
  const subject: CheckpointStoreSubject = {
    name: kind,
    async create() {
      runs++;
      const store = storeOf(kind, run(), 2);
      await store.clear();
      return store;
    },
    reopen: async () => storeOf(kind, run(), 2),
    damageNewest: () => (kind === "opfs" ? damageInOpfs : damageInIndexedDb)(run()),
  };
  const failures: string[] = [];
  const cases = checkpointStoreContract(subject);
  for (const { name, run } of cases)
    await run().catch((error: unknown) => failures.push(`${name}: ${String(error)}`));
  return cases.length < 5 ? ["there are too few cases"] : failures;
}
