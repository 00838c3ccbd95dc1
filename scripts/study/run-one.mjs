// `node run-one.mjs BUNDLE VARIANT SEED FILE`: trains one variant of a study from one seed, and writes its outcome to a file,
// because the app itself uses standard output.
import { pathToFileURL } from "node:url";
import { writeWhole } from "../whole-file.mjs";

const [bundle, variant, seed, file] = process.argv.slice(2);
process.setSourceMapsEnabled(true);
const { default: study } = await import(pathToFileURL(bundle).href);
const outcome = await study.run(variant, Number(seed));
writeWhole(file, JSON.stringify(outcome));
// A device that an app has left open would keep the process alive.
process.exit(0);
