/** Calls that write a file where it stands, so that a full disk leaves a part of it. */
const writing =
  /\b(?:writeFile|writeFileSync|createWriteStream|appendFile|appendFileSync|copyFile|copyFileSync|cpSync|toFile|writeSafetensorsFile)\(|\bopen(?:Sync)?\([^)\n]*,\s*["'][wa]|\bO_(?:WRONLY|RDWR|CREAT|APPEND)\b/g;

/** The lines of a source that write files themselves. @param {string} source */
export const writersIn = (source) =>
  source
    .split("\n")
    .flatMap((line, i) =>
      !/^\s*(\/\/|\*|\/\*)/.test(line) &&
      !/\bfunction\s|^import\b/.test(line) &&
      line.search(writing) >= 0
        ? [i + 1]
        : [],
    );
