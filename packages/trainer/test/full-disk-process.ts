// Writes to a disk that has no room for it: node full-disk-process.js file|folder|run DIRECTORY. Then it says what is there.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { program } from "../src/cli/program.js";
import { writeWholeFile } from "../src/files/whole-file.js";
import { writeWholeFolder } from "../src/files/whole-folder.js";

const [what, directory = ""] = process.argv.slice(2);
const large = new Uint8Array(2 ** 20);
await program(async () => {
  await writeWholeFile(join(directory, "good"), "good");
  if (what === "file") await writeWholeFile(join(directory, "good"), large);
  await writeWholeFolder(join(directory, what === "new" ? "model" : ""), async (folder) => {
    await folder.write("good", "new");
    await folder.write("weights", large);
  });
  return 0;
});
const left = readdirSync(directory).map((name) => [
  name,
  readFileSync(join(directory, name), "utf8"),
]);
process.stdout.write(JSON.stringify(Object.fromEntries(left)));
