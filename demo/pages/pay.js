// Owns the payment page's one habit: where a tool is checking out it pays by itself after a second, slowly
// enough to be watched. It knows nothing of the relay or of tokens.

const form = document.getElementById('pay-form');
if (form && 'goesOn' in form.dataset) setTimeout(() => form.requestSubmit(), 1000);
