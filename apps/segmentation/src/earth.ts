import { join } from "node:path";
import { datasetPackage } from "../../../scripts/bootstrap/datasets.mjs";
import { readPicture } from "./pictures.js";
import { crop, type Scene, type SceneSet } from "./scene.js";

/** Number of parts of equal width into which the Earth is divided from pole to pole … … */
const parts = 16;
/** … of which every fourth is held out. */
const heldOutEvery = 4;

const classes = ["water", "land"] as const;

/**
 * Land and water on the "blue marble" of three-globe: 4096×2048 pixels times `scale`, by longitude and latitude. Three in four
 * of its 16 meridian strips are for training; adjacent strips form one scene.
 * @throws DataError where the package cannot be installed
 */
export async function readEarth(scale = 0.25): Promise<SceneSet> {
  const datasets = new URL("../datasets/", import.meta.url);
  const pictures = join(await datasetPackage(datasets, "three-globe"), "example", "img");
  const image = await readPicture(join(pictures, "earth-blue-marble.jpg"), { channels: 3, scale });
  const water = await readPicture(join(pictures, "earth-water.png"), {
    channels: 1,
    size: image,
  });
  const earth: Scene = {
    ...image,
    name: "Earth",
    // The mask has 1600×800 pixels, so its greys are shares of water.
    labels: water.pixels.map((grey) => (grey < 128 ? classes.indexOf("land") : 0)),
  };
  return { ...splitByLongitude(earth), scale };
}

/** Divides a map of the whole Earth into training and held-out strips. */
function splitByLongitude(earth: Scene): Omit<SceneSet, "scale"> {
  const { height } = earth;
  const border = (part: number): number => Math.round((part * earth.width) / parts);
  const between = (first: number, end: number): Scene => ({
    ...crop(earth, { x: border(first), y: 0, width: border(end) - border(first), height }),
    name: `${degrees(first)} to ${degrees(end)}`,
  });
  const first = Array.from({ length: parts / heldOutEvery }, (_, i) => i * heldOutEvery);
  return {
    name: "land and water",
    channels: earth.channels,
    classes,
    maskKind: "grey",
    maskValues: [0, 255],
    flips: true,
    train: first.map((part) => between(part, part + heldOutEvery - 1)),
    heldOut: first.map((part) => between(part + heldOutEvery - 1, part + heldOutEvery)),
  };
}

function degrees(part: number): string {
  const longitude = (part * 360) / parts - 180;
  return longitude < 0 ? `${-longitude}° W` : `${longitude}° E`;
}
