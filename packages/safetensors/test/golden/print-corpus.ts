// Prints the corpus for verdicts.py: each file in base64, one a line.
import { corpus } from "../corpus.js";

for (const { bytes } of corpus) console.log(Buffer.from(bytes).toString("base64"));
