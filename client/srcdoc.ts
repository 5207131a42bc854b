/**
 * Documents that were written as `srcdoc` have no file of their own that could load the relay: the page that holds them gives
 * them its own script tag.
 */

/** Whatever the frame is, and whatever its page allows: it is no worse off than without us. */
export function copyScriptTag({ contentDocument }: HTMLIFrameElement, tag: HTMLScriptElement): void {
  // A bundle with this in it is not ours to run once more.
  const isOurs = /webmcp-relay[^/]*$/.test(tag.src);
  if (contentDocument?.URL !== 'about:srcdoc' || !isOurs) return;
  if ((contentDocument as { modelContext?: object }).modelContext) return;
  const copy = document.createElement('script');
  Object.assign(copy.dataset, tag.dataset);
  copy.nonce = tag.nonce;
  copy.src = tag.src;
  contentDocument.head.append(copy);
}
