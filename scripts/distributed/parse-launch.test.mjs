import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseLaunch } from "./parse-launch.mjs";

const apps = join(import.meta.dirname, "../../apps");
const parse = (line) => parseLaunch(line.split(" ").filter(Boolean), apps);

describe("npm run distributed", () => {
  it("takes the number of ranks in every spelling, and passes on the flags of the app", () => {
    const expected = { ranks: 4, app: "images", args: ["DIR", "-n", "--fp16"] };
    for (const flag of ["-n 4", "-np 4", "--nproc_per_node=4", "--nproc-per-node 4"])
      expect(parse(`${flag} images DIR -n --fp16`)).toEqual(expected);
    expect(parse("images")).toEqual({ ranks: 2, app: "images", args: [] });
  });

  it("says what is wrong", () => {
    expect(parse("-n 0 images").wrong).toMatch(/^0 is no number of ranks: npm run distributed/);
    expect(parse("-n").wrong).toMatch(/^nothing is no number/);
    expect(parse("").wrong).toMatch(/^no app is named/);
    expect(parse("../images").wrong).toMatch(/^there is no app/);
  });
});
