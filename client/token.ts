/**
 * A continuation token on its way from one page to the next: in the address, or in sessionStorage where the way leads over
 * pages of another origin.
 */

/** The parameter of the address and the key in sessionStorage. */
const TOKEN_NAME = 'webmcp-token';

const TOKEN_PATTERN = /^[\w-]{43}$/;

/** Can this be a token at all? */
export function isToken(text: string): boolean {
  return TOKEN_PATTERN.test(text);
}

/** The address with the token in it; a relative one is read against this document's. Meant for pages of this origin alone. */
export function withToken(url: string | URL, token: string): string {
  const address = new URL(url, document.baseURI);
  address.searchParams.set(TOKEN_NAME, token);
  return address.href;
}

/** The address as others may see it. */
export function withoutToken(url: string): string {
  const address = new URL(url);
  address.searchParams.delete(TOKEN_NAME);
  return address.href;
}

/**
 * The token that this page was handed, or `null`: from its address, else from sessionStorage, where it is removed.
 * `strip` (on unless `false`) removes it from the address too, so that neither a reload nor a shared link carries it.
 */
export function takeToken({ strip = true }: { strip?: boolean } = {}): string | null {
  const token = new URL(location.href).searchParams.get(TOKEN_NAME);
  if (token === null) return takeStoredToken();
  if (strip) history.replaceState(history.state, '', withoutToken(location.href));
  return token;
}

function takeStoredToken(): string | null {
  try {
    const token = sessionStorage.getItem(TOKEN_NAME);
    sessionStorage.removeItem(TOKEN_NAME);
    return token;
  } catch {
    return null;
  }
}
