/** What each verse adds, the newest first in a verse. */
const additions = [
  "the house that Jack built.",
  "the malt\nThat lay in",
  "the rat,\nThat ate",
  "the cat,\nThat killed",
  "the dog,\nThat worried",
  "the cow with the crumpled horn,\nThat tossed",
  "the maiden all forlorn,\nThat milked",
  "the man all tattered and torn,\nThat kissed",
  "the priest all shaven and shorn,\nThat married",
  "the cock that crowed in the morn,\nThat waked",
  "the farmer sowing his corn,\nThat kept",
] as const;

/** "This Is the House That Jack Built", a nursery rhyme of 1755. It repeats so much that a small model soon writes it. */
export const nurseryRhyme: string = additions
  .map(
    (_, verse) =>
      `This is ${additions
        .slice(0, verse + 1)
        .toReversed()
        .join(" ")}`,
  )
  .join("\n\n");
