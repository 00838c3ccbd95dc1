import {
  CheckpointArchive,
  type CheckpointArchiveOptions,
} from "../checkpoint/checkpoint-archive.js";

/**
 * Checkpoints in a folder of the origin private file system, which only this origin sees. It keeps them over reloads, until the user
 * clears the site's data; `navigator.storage.persist()` asks the browser not to do so for want of room.
 *
 * @param path of the folder, such as `runs/digits`, which is made if need be.
 * @throws TypeError for what is no path of a folder
 */
export function opfsCheckpoints(
  path: string,
  options?: CheckpointArchiveOptions,
): CheckpointArchive {
  const names = typeof path === "string" ? path.split("/").filter((name) => name !== "") : [];
  if (names.length === 0 || names.some((name) => name === "." || name === ".."))
    throw new TypeError(
      `opfsCheckpoints(path): path is ${typeof path === "string" ? JSON.stringify(path) : typeof path}; it must name a folder, such as "runs/digits"`,
    );
  const folder = async (): Promise<FileSystemDirectoryHandle> => {
    let handle = await navigator.storage.getDirectory();
    for (const name of names) handle = await handle.getDirectoryHandle(name, { create: true });
    return handle;
  };
  return new CheckpointArchive(
    path,
    {
      async list() {
        const found: string[] = [];
        for await (const name of (await folder()).keys()) found.push(name);
        return found;
      },
      async read(name) {
        const handle = await (await folder()).getFileHandle(name);
        return new Uint8Array(await (await handle.getFile()).arrayBuffer());
      },
      async write(name, bytes) {
        const handle = await (await folder()).getFileHandle(name, { create: true });
        // It replaces the file when it is closed.
        const writable = await handle.createWritable();
        await writable.write(bytes);
        await writable.close();
      },
      async remove(name) {
        await (await folder()).removeEntry(name);
      },
    },
    options,
  );
}
