/* The interface of the course gritukan/hamkaas, from outside of the repository. */
#include <arenite/hamkaas.h>
#include <stdio.h>

int main(void) {
  const float x[2] = {2, 4};
  float y[2] = {0, 0};
  char* error = HamKaasInverseElements(x, y, 2);
  if (error) {
    fprintf(stderr, "%s\n", error);
    HamKaasFreeErrorMessage(error);
    return 1;
  }
  printf("%g %g\n", y[0], y[1]);
  return y[0] != 0.5f || y[1] != 0.25f;
}
