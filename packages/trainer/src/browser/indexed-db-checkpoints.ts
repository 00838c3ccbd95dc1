import {
  CheckpointArchive,
  type CheckpointArchiveOptions,
} from "../checkpoint/checkpoint-archive.js";

const files = "files";

/**
 * Checkpoints in a database of IndexedDB, which only this origin sees: for browsers whose file system is not at hand. It keeps them as
 * `opfsCheckpoints()` does.
 *
 * @param database its name, for these checkpoints alone.
 * @throws TypeError for what is no name
 */
export function indexedDbCheckpoints(
  database: string,
  options?: CheckpointArchiveOptions,
): CheckpointArchive {
  if (typeof database !== "string" || database === "")
    throw new TypeError(
      `indexedDbCheckpoints(database): database is ${typeof database === "string" ? '""' : typeof database}; it must be a name, such as "runs/digits"`,
    );
  const using = async <T>(
    mode: IDBTransactionMode,
    work: (store: IDBObjectStore) => IDBRequest<T>,
  ): Promise<T> => {
    const opening = indexedDB.open(database, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(files);
    const db = await resultOf(opening);
    try {
      const transaction = db.transaction(files, mode, { durability: "strict" });
      const request = work(transaction.objectStore(files));
      await ended(transaction);
      return request.result;
    } finally {
      db.close();
    }
  };
  return new CheckpointArchive(
    database,
    {
      list: async () => (await using("readonly", (store) => store.getAllKeys())).map(String),
      read: (name) => using("readonly", (store) => store.get(name)),
      write: async (name, bytes) => {
        await using("readwrite", (store) => store.put(bytes, name));
      },
      remove: (name) => using("readwrite", (store) => store.delete(name)),
    },
    options,
  );
}

const resultOf = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

const ended = (transaction: IDBTransaction): Promise<void> =>
  new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error);
  });
