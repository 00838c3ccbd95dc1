/** An error's message as a sentence of the page: with a capital where it begins with a word, and with a full stop. */
export function sentence(message: string): string {
  const begun = /^[a-z]+ /.test(message)
    ? message.charAt(0).toUpperCase() + message.slice(1)
    : message;
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}
